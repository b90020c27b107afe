package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.QueuedRequests;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Who goes first. */
final class PriorityTest {
    private static final PriorityPolicy LEVELS = new PriorityPolicy(-1, 5, QueuePolicy.NONE, Map.of());
    private static final PriorityPolicy DELAYING = new PriorityPolicy(
            3, 2, new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, 10, false, 0), Map.of(3L, QueuePolicy.NONE));

    @Test
    void servesLowerNumbersFirst() {
        try (QueuedRequests calls = new QueuedRequests(LEVELS)) {
            calls.submit("last", -1); // unsigned: the largest
            calls.submit("seven", 7);
            calls.submit("default", 0);
            calls.submit("one", 1);
            calls.submit("five", 5);
            calls.scheduler.step();
            calls.submit("one more", 1);

            calls.scheduler.drain();

            assertThat(calls.executed()).containsExactly("one", "one more", "default", "five", "seven", "last");
        }
    }

    @Test
    void neverExecutesACancelledRequestWithoutBatching() {
        try (QueuedRequests calls = new QueuedRequests(PriorityPolicy.NONE)) {
            calls.submit("a");
            Cancellation withdrawn = calls.submit("withdrawn");
            calls.submit("b");

            withdrawn.cancel();
            calls.scheduler.drain();

            assertThat(calls.executed()).containsExactly("a", "b");
            calls.observer("withdrawn").assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
    }

    @Test
    void aBatchMaySpanLevels() {
        BatchPlanner planner = new BatchPlanner(QueuedRequests.MAX_BATCH, List.of(), 0);
        try (QueuedRequests calls = new QueuedRequests(planner, LEVELS, FakeInstance::copy)) {
            calls.submit("3a", 3);
            calls.submit("1a", 1);
            calls.submit("2a", 2);
            calls.submit("1b", 1);
            calls.submit("3b", 3);

            calls.scheduler.drain();

            assertThat(calls.batches()).containsExactly(List.of("1a", "1b", "2a", "3a", "3b"));
        }
    }

    @Test
    void servesDelayedAfterLiveOnes() {
        try (QueuedRequests calls = new QueuedRequests(DELAYING)) {
            calls.submit("1 late", 1);
            calls.scheduler.advance(11);
            calls.submit("1 live", 1);

            calls.scheduler.drain();

            assertThat(calls.executed()).containsExactly("1 live", "1 late");
        }
    }

    @Test
    void servesDelayedBeforeLowerLevels() {
        try (QueuedRequests calls = new QueuedRequests(DELAYING)) {
            calls.submit("3 live", 3);
            calls.submit("2 late", 2);
            calls.submit("1 late", 1);
            calls.scheduler.advance(11);
            calls.submit("2 live", 2);

            calls.scheduler.drain();

            assertThat(calls.executed()).containsExactly("1 late", "2 live", "2 late", "3 live");
        }
    }

    @Test
    void neverExecutesACancelledDelayedRequest() {
        try (QueuedRequests calls = new QueuedRequests(DELAYING)) {
            Cancellation a = calls.submit("a", 1);
            calls.submit("b", 1);
            Cancellation c = calls.submit("c", 1);
            calls.scheduler.advance(11);

            a.cancel();
            c.cancel();
            calls.submit("d", 1);
            calls.scheduler.drain();

            calls.observer("a").assertError(ErrorCode.CANCELLED, "request was cancelled");
            calls.observer("c").assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(calls.executed()).containsExactly("d", "b");
        }
    }

    @Test
    void removesEmptyLevels() {
        try (QueuedRequests calls = new QueuedRequests(LEVELS)) {
            for (int i = 1; i <= 1_000; i++) {
                calls.submit("gone " + i, i).cancel();
            }
            calls.submit("b", 2_000);
            calls.submit("a", 1_000);

            assertThat(calls.scheduler.queue.waiting()).isEqualTo(2);
            calls.scheduler.drain();
            assertThat(calls.executed()).containsExactly("a", "b");
        }
    }
}
