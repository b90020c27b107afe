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

/** What becomes of requests that wait for longer than their level lets them. */
final class QueueTimeoutTest {
    private static final long TIMEOUT = 5_000;
    private static final QueuePolicy REJECT = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, TIMEOUT, true, 0);
    private static final QueuePolicy DELAY = new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, TIMEOUT, true, 0);

    @Test
    void rejectsWithTheText() {
        try (QueuedRequests calls = QueuedRequests.under(REJECT)) {
            calls.submit("a");

            calls.scheduler.advance(TIMEOUT + 1);

            calls.observer("a").assertError(ErrorCode.UNAVAILABLE, "Request timeout expired");
        }
    }

    @Test
    void expiresAtTheNanosecondOnAFakeClock() {
        try (QueuedRequests calls = QueuedRequests.under(REJECT)) {
            calls.submit("a");
            calls.scheduler.advance(TIMEOUT);
            assertThat(calls.observer("a").isSilent()).isTrue();

            calls.scheduler.advance(1);

            assertThat(calls.observer("a").hasEnded()).isTrue();
        }
    }

    @Test
    void rejectsAfterTheTimeout() {
        try (QueuedRequests calls = QueuedRequests.under(REJECT)) {
            calls.submit("a");
            calls.scheduler.advance(3_000);
            calls.submit("b");
            calls.scheduler.advance(2_001);

            assertThat(calls.observer("a").hasEnded()).isTrue();
            assertThat(calls.observer("b").isSilent()).isTrue();
            assertThat(calls.scheduler.inFlight()).as("memory is back").isEqualTo(1);
            calls.scheduler.drain();
            assertThat(calls.executed()).containsExactly("b");
        }
    }

    @Test
    void expiresAfterTheLastNanosecond() {
        try (QueuedRequests calls = QueuedRequests.under(REJECT)) {
            calls.submit("a");
            calls.submit("b");
            calls.scheduler.clock.advanceNanos(TIMEOUT);
            calls.scheduler.step();
            calls.scheduler.clock.advanceNanos(1); // nobody rings: the instance meets it
            calls.scheduler.step();

            assertThat(calls.executed()).containsExactly("a");
            calls.observer("b").assertError(ErrorCode.UNAVAILABLE, "Request timeout expired");
        }
    }

    @Test
    void countsFromTheOffer() {
        try (QueuedRequests calls = QueuedRequests.under(REJECT)) {
            calls.scheduler.advance(100_000);
            calls.submit("a");

            calls.scheduler.advance(TIMEOUT);

            assertThat(calls.observer("a").isSilent()).isTrue();
        }
    }

    @Test
    void takesTheShorterTimeOfARequest() {
        try (QueuedRequests calls = QueuedRequests.under(REJECT)) {
            calls.submit("a", call -> call.timeoutMicros(2));
            calls.submit("b", call -> call.timeoutMicros(6));

            calls.scheduler.advance(2_001);
            assertThat(calls.observer("a").hasEnded()).isTrue();
            assertThat(calls.observer("b").isSilent()).isTrue();
            calls.scheduler.advance(3_000);

            assertThat(calls.observer("b").hasEnded()).isTrue();
        }
    }

    @Test
    void expiresEarlierForALaterRequestWithAShorterTimeout() {
        try (QueuedRequests calls = QueuedRequests.under(REJECT)) {
            calls.submit("a");
            calls.submit("b", call -> call.timeoutMicros(1));

            calls.scheduler.advance(1_001);

            assertThat(calls.observer("a").isSilent()).isTrue();
            assertThat(calls.observer("b").hasEnded()).isTrue();
        }
    }

    @Test
    void defaultSchedulerIgnoresRequestTimeout() {
        try (QueuedRequests calls = new QueuedRequests(BatchingPolicy.NONE.priorities())) {
            calls.submit("a", call -> call.timeoutMicros(1));

            calls.scheduler.advance(1_000_000);

            assertThat(calls.observer("a").isSilent()).isTrue();
        }
    }

    @Test
    void waitsForeverIfTheTimeoutOverflows() {
        QueuePolicy endless = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, Long.MAX_VALUE, false, 0);
        try (QueuedRequests calls = QueuedRequests.under(endless)) {
            calls.submit("a", call -> call.timeoutMicros(-1));

            calls.scheduler.advance(Long.MAX_VALUE / 2);

            assertThat(calls.observer("a").isSilent()).isTrue();
        }
    }

    @Test
    void movesAnExpiredRequestBehindTheLiveOnes() {
        try (QueuedRequests calls = QueuedRequests.under(DELAY)) {
            calls.submit("late 1");
            calls.submit("late 2");
            calls.scheduler.advance(TIMEOUT - 1);
            calls.submit("live 1");
            calls.scheduler.advance(2);
            calls.submit("live 2");

            calls.scheduler.drain();

            assertThat(calls.executed()).containsExactly("live 1", "live 2", "late 1", "late 2");
        }
    }

    @Test
    void delaysAfterTheTimeout() {
        try (QueuedRequests calls = QueuedRequests.under(DELAY)) {
            calls.submit("late");
            calls.scheduler.clock.advanceNanos(TIMEOUT);
            calls.submit("live");
            calls.scheduler.clock.advanceNanos(1); // nobody rings: the instance meets it

            calls.scheduler.drain();

            assertThat(calls.executed()).containsExactly("live", "late");
        }
    }

    @Test
    void neverExpiresTwice() {
        try (QueuedRequests calls = QueuedRequests.under(DELAY)) {
            calls.submit("a");
            calls.scheduler.advance(TIMEOUT + 1);
            calls.submit("b");
            calls.scheduler.advance(TIMEOUT + 1);

            calls.scheduler.advance(100 * TIMEOUT);
            calls.scheduler.drain();

            assertThat(calls.executed()).containsExactly("a", "b");
        }
    }

    @Test
    void leavesAnExecutingRequestAlone() {
        List<DeferredExecution> deferred = new ArrayList<>();
        PriorityPolicy priorities = new PriorityPolicy(0, 0, REJECT, Map.of());
        try (QueuedRequests calls = new QueuedRequests(BatchPlanner.oneByOne(), priorities, batch -> {
            FakeInstance.copy(batch);
            deferred.add(batch.defer());
        })) {
            calls.submit("a");
            calls.scheduler.step();

            calls.scheduler.advance(TIMEOUT + 1);

            assertThat(calls.observer("a").isSilent()).isTrue();
            deferred.getFirst().finish();
            assertThat(calls.observer("a").response().outputs()).hasSize(1);
        }
    }

    @Test
    void rejectsExpiredRequestsBesidesTakingABatch() {
        try (QueuedRequests calls = QueuedRequests.under(REJECT)) {
            calls.submit("late");
            calls.scheduler.clock.advanceNanos(TIMEOUT + 1);
            calls.submit("live");

            assertThat(calls.scheduler.step()).isTrue();

            assertThat(calls.observer("late").hasEnded()).isTrue();
            assertThat(calls.executed()).containsExactly("live");
        }
    }
}
