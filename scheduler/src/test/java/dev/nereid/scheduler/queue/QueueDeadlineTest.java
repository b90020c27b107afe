package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.QueuedRequests;
import dev.nereid.spi.ErrorCode;
import org.junit.jupiter.api.Test;

/** What becomes of requests whose clients lose interest while they wait. */
final class QueueDeadlineTest {
    private static final QueuePolicy REJECT = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 5_000, false, 0);
    private static final QueuePolicy DELAY = new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, 5_000, false, 0);

    private static void submit(QueuedRequests calls, String id, long nanosLeft) {
        calls.submit(id, call -> call.deadline(calls.scheduler.clock.getAsLong() + nanosLeft));
    }

    @Test
    void cancelsWhenTheDeadlinePasses() {
        try (QueuedRequests calls = new QueuedRequests(BatchingPolicy.NONE.priorities())) {
            submit(calls, "a", 100);
            calls.scheduler.advance(99);
            assertThat(calls.observer("a").isSilent()).isTrue();

            calls.scheduler.advance(1);

            calls.observer("a").assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(calls.scheduler.inFlight()).isZero();
        }
    }

    @Test
    void neverExecutesWhatCameTooLate() {
        try (QueuedRequests calls = new QueuedRequests(BatchingPolicy.NONE.priorities())) {
            submit(calls, "a", -1);
            submit(calls, "b", Long.MIN_VALUE + 1);
            calls.scheduler.drain();

            calls.observer("a").assertError(ErrorCode.CANCELLED, "request was cancelled");
            calls.observer("b").assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(calls.executed()).isEmpty();
        }
    }

    @Test
    void waitsForAnyTimeIfTheDeadlineIsBeyondAllTimes() {
        try (QueuedRequests calls = new QueuedRequests(BatchingPolicy.NONE.priorities())) {
            submit(calls, "a", Long.MAX_VALUE);
            submit(calls, "b", 100);

            calls.scheduler.advance(100);

            assertThat(calls.observer("a").isSilent()).isTrue();
            assertThat(calls.observer("b").hasEnded()).isTrue();
        }
    }

    @Test
    void theEarlierOfDeadlineAndTimeoutCounts() {
        try (QueuedRequests calls = QueuedRequests.under(REJECT)) {
            submit(calls, "deadline", 4_000);
            submit(calls, "timeout", 6_000);

            calls.scheduler.advance(7_000);

            calls.observer("deadline").assertError(ErrorCode.CANCELLED, "request was cancelled");
            calls.observer("timeout").assertError(ErrorCode.UNAVAILABLE, "Request timeout expired");
        }
    }

    @Test
    void cancelsADelayedRequest() {
        try (QueuedRequests calls = QueuedRequests.under(DELAY)) {
            submit(calls, "a", 6_000);
            calls.scheduler.advance(5_001);
            assertThat(calls.observer("a").isSilent()).isTrue();

            calls.scheduler.advance(999);

            calls.observer("a").assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
    }

    @Test
    void cancelsARequestThatIsDelayedTooLate() {
        try (QueuedRequests calls = QueuedRequests.under(DELAY)) {
            submit(calls, "a", 6_000);

            calls.scheduler.advance(6_000);

            calls.observer("a").assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
    }
}
