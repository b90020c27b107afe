package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.QueuedRequests;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Timeouts of waiting requests. */
final class QueueTimeoutTest {
    private static final long TIMEOUT = 5_000;
    private static final QueuePolicy REJECT = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, TIMEOUT, true, 0);
    private static final QueuePolicy DELAY = new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, TIMEOUT, true, 0);

    @Test
    void rejectsWithTheText() {
        try (QueuedRequests queued = QueuedRequests.under(REJECT)) {
            queued.submit("a");

            queued.scheduler.advance(TIMEOUT + 1);

            queued.observer("a").assertError(ErrorCode.UNAVAILABLE, "Request timeout expired");
        }
    }

    @Test
    void expiresAtTheNanosecondOnAFakeClock() {
        try (QueuedRequests queued = QueuedRequests.under(REJECT)) {
            queued.submit("a");
            queued.scheduler.advance(TIMEOUT);
            assertThat(queued.observer("a").isSilent()).isTrue();

            queued.scheduler.advance(1);

            assertThat(queued.observer("a").hasEnded()).isTrue();
        }
    }

    @Test
    void rejectsAfterTheTimeout() {
        try (QueuedRequests queued = QueuedRequests.under(REJECT)) {
            queued.submit("a");
            queued.scheduler.advance(3_000);
            queued.submit("b");
            queued.scheduler.advance(2_001);

            assertThat(queued.observer("a").hasEnded()).isTrue();
            assertThat(queued.observer("b").isSilent()).isTrue();
            assertThat(queued.scheduler.inFlight()).as("memory is back").isEqualTo(1);
            queued.scheduler.drain();
            assertThat(queued.executed()).containsExactly("b");
        }
    }

    @Test
    void expiresAfterTheLastNanosecond() {
        try (QueuedRequests queued = QueuedRequests.under(REJECT)) {
            queued.submit("a");
            queued.submit("b");
            queued.scheduler.clock.advanceNanos(TIMEOUT);
            queued.scheduler.step();
            queued.scheduler.clock.advanceNanos(1); // without a timeout: the instance finds it
            queued.scheduler.step();

            assertThat(queued.executed()).containsExactly("a");
            queued.observer("b").assertError(ErrorCode.UNAVAILABLE, "Request timeout expired");
        }
    }

    @Test
    void countsFromTheOffer() {
        try (QueuedRequests queued = QueuedRequests.under(REJECT)) {
            queued.scheduler.advance(100_000);
            queued.submit("a");

            queued.scheduler.advance(TIMEOUT);

            assertThat(queued.observer("a").isSilent()).isTrue();
        }
    }

    @Test
    void takesTheShorterTimeOfARequest() {
        try (QueuedRequests queued = QueuedRequests.under(REJECT)) {
            queued.submit("a", request -> request.timeoutMicros(2));
            queued.submit("b", request -> request.timeoutMicros(6));

            queued.scheduler.advance(2_001);
            assertThat(queued.observer("a").hasEnded()).isTrue();
            assertThat(queued.observer("b").isSilent()).isTrue();
            queued.scheduler.advance(3_000);

            assertThat(queued.observer("b").hasEnded()).isTrue();
        }
    }

    @Test
    void expiresEarlierForALaterRequestWithAShorterTimeout() {
        try (QueuedRequests queued = QueuedRequests.under(REJECT)) {
            queued.submit("a");
            queued.submit("b", request -> request.timeoutMicros(1));

            queued.scheduler.advance(1_001);

            assertThat(queued.observer("a").isSilent()).isTrue();
            assertThat(queued.observer("b").hasEnded()).isTrue();
        }
    }

    @Test
    void defaultSchedulerIgnoresRequestTimeout() {
        try (QueuedRequests queued = new QueuedRequests(BatchingPolicy.NONE.priorities())) {
            queued.submit("a", request -> request.timeoutMicros(1));

            queued.scheduler.advance(1_000_000);

            assertThat(queued.observer("a").isSilent()).isTrue();
        }
    }

    @Test
    void waitsForeverIfTheTimeoutOverflows() {
        QueuePolicy endless = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, Long.MAX_VALUE, false, 0);
        try (QueuedRequests queued = QueuedRequests.under(endless)) {
            queued.submit("a", request -> request.timeoutMicros(-1));

            queued.scheduler.advance(Long.MAX_VALUE / 2);

            assertThat(queued.observer("a").isSilent()).isTrue();
        }
    }

    @Test
    void movesAnExpiredRequestBehindTheLiveOnes() {
        try (QueuedRequests queued = QueuedRequests.under(DELAY)) {
            queued.submit("late 1");
            queued.submit("late 2");
            queued.scheduler.advance(TIMEOUT - 1);
            queued.submit("live 1");
            queued.scheduler.advance(2);
            queued.submit("live 2");

            queued.scheduler.drain();

            assertThat(queued.executed()).containsExactly("live 1", "live 2", "late 1", "late 2");
        }
    }

    @Test
    void delaysAfterTheTimeout() {
        try (QueuedRequests queued = QueuedRequests.under(DELAY)) {
            queued.submit("late");
            queued.scheduler.clock.advanceNanos(TIMEOUT);
            queued.submit("live");
            queued.scheduler.clock.advanceNanos(1); // without a timeout: the instance finds it

            queued.scheduler.drain();

            assertThat(queued.executed()).containsExactly("live", "late");
        }
    }

    @Test
    void neverExpiresTwice() {
        try (QueuedRequests queued = QueuedRequests.under(DELAY)) {
            queued.submit("a");
            queued.scheduler.advance(TIMEOUT + 1);
            queued.submit("b");
            queued.scheduler.advance(TIMEOUT + 1);

            queued.scheduler.advance(100 * TIMEOUT);
            queued.scheduler.drain();

            assertThat(queued.executed()).containsExactly("a", "b");
        }
    }

    @Test
    void leavesAnExecutingRequestAlone() {
        List<DeferredExecution> deferred = new ArrayList<>();
        PriorityPolicy priorities = new PriorityPolicy(0, 0, REJECT, Map.of());
        try (QueuedRequests queued = new QueuedRequests(BatchPlanner.oneByOne(), priorities, batch -> {
            FakeInstance.copy(batch);
            deferred.add(batch.defer());
        })) {
            queued.submit("a");
            queued.scheduler.step();

            queued.scheduler.advance(TIMEOUT + 1);

            assertThat(queued.observer("a").isSilent()).isTrue();
            deferred.getFirst().complete();
            assertThat(queued.observer("a").response().outputs()).hasSize(1);
        }
    }

    @Test
    void rejectsExpiredRequestsBesidesTakingABatch() {
        try (QueuedRequests queued = QueuedRequests.under(REJECT)) {
            queued.submit("late");
            queued.scheduler.clock.advanceNanos(TIMEOUT + 1);
            queued.submit("live");

            assertThat(queued.scheduler.step()).isTrue();

            assertThat(queued.observer("late").hasEnded()).isTrue();
            assertThat(queued.executed()).containsExactly("live");
        }
    }
}
