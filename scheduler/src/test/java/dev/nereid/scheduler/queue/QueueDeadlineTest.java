package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.QueuedRequests;
import dev.nereid.spi.ErrorCode;
import org.junit.jupiter.api.Test;

/** Deadlines of waiting requests. */
final class QueueDeadlineTest {
    private static final QueuePolicy REJECT = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 5_000, false, 0);
    private static final QueuePolicy DELAY = new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, 5_000, false, 0);

    private static void submit(QueuedRequests queued, String id, long nanosLeft) {
        queued.submit(id, request -> request.deadline(queued.scheduler.clock.getAsLong() + nanosLeft));
    }

    @Test
    void cancelsWhenTheDeadlinePasses() {
        try (QueuedRequests queued = new QueuedRequests(BatchingPolicy.NONE.priorities())) {
            submit(queued, "a", 100);
            queued.scheduler.advance(99);
            assertThat(queued.observer("a").isSilent()).isTrue();

            queued.scheduler.advance(1);

            queued.observer("a").assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(queued.scheduler.inFlight()).isZero();
        }
    }

    @Test
    void neverExecutesWhatCameTooLate() {
        try (QueuedRequests queued = new QueuedRequests(BatchingPolicy.NONE.priorities())) {
            submit(queued, "a", -1);
            submit(queued, "b", Long.MIN_VALUE + 1);
            queued.scheduler.drain();

            queued.observer("a").assertError(ErrorCode.CANCELLED, "request was cancelled");
            queued.observer("b").assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(queued.executed()).isEmpty();
        }
    }

    @Test
    void waitsForAnyTimeIfTheDeadlineIsBeyondAllTimes() {
        try (QueuedRequests queued = new QueuedRequests(BatchingPolicy.NONE.priorities())) {
            submit(queued, "a", Long.MAX_VALUE);
            submit(queued, "b", 100);

            queued.scheduler.advance(100);

            assertThat(queued.observer("a").isSilent()).isTrue();
            assertThat(queued.observer("b").hasEnded()).isTrue();
        }
    }

    @Test
    void theEarlierOfDeadlineAndTimeoutCounts() {
        try (QueuedRequests queued = QueuedRequests.under(REJECT)) {
            submit(queued, "deadline", 4_000);
            submit(queued, "timeout", 6_000);

            queued.scheduler.advance(7_000);

            queued.observer("deadline").assertError(ErrorCode.CANCELLED, "request was cancelled");
            queued.observer("timeout").assertError(ErrorCode.UNAVAILABLE, "Request timeout expired");
        }
    }

    @Test
    void cancelsADelayedRequest() {
        try (QueuedRequests queued = QueuedRequests.under(DELAY)) {
            submit(queued, "a", 6_000);
            queued.scheduler.advance(5_001);
            assertThat(queued.observer("a").isSilent()).isTrue();

            queued.scheduler.advance(999);

            queued.observer("a").assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
    }

    @Test
    void cancelsARequestThatIsDelayedTooLate() {
        try (QueuedRequests queued = QueuedRequests.under(DELAY)) {
            submit(queued, "a", 6_000);

            queued.scheduler.advance(6_000);

            queued.observer("a").assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
    }
}
