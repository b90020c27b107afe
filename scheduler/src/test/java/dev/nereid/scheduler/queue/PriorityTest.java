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

/** The order of requests of several priorities. */
final class PriorityTest {
    private static final PriorityPolicy LEVELS = new PriorityPolicy(-1, 5, QueuePolicy.NONE, Map.of());
    private static final PriorityPolicy DELAYING = new PriorityPolicy(
            3, 2, new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, 10, false, 0), Map.of(3L, QueuePolicy.NONE));

    @Test
    void servesLowerNumbersFirst() {
        try (QueuedRequests queued = new QueuedRequests(LEVELS)) {
            queued.submit("last", -1); // unsigned: the largest
            queued.submit("seven", 7);
            queued.submit("default", 0);
            queued.submit("one", 1);
            queued.submit("five", 5);
            queued.scheduler.step();
            queued.submit("one more", 1);

            queued.scheduler.drain();

            assertThat(queued.executed()).containsExactly("one", "one more", "default", "five", "seven", "last");
        }
    }

    @Test
    void neverExecutesACancelledRequestWithoutBatching() {
        try (QueuedRequests queued = new QueuedRequests(PriorityPolicy.NONE)) {
            queued.submit("a");
            Cancellation cancelled = queued.submit("cancelled");
            queued.submit("b");

            cancelled.cancel();
            queued.scheduler.drain();

            assertThat(queued.executed()).containsExactly("a", "b");
            queued.observer("cancelled").assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
    }

    @Test
    void aBatchMaySpanLevels() {
        BatchPlanner planner = new BatchPlanner(QueuedRequests.MAX_BATCH, List.of(), 0);
        try (QueuedRequests queued = new QueuedRequests(planner, LEVELS, FakeInstance::copy)) {
            queued.submit("3a", 3);
            queued.submit("1a", 1);
            queued.submit("2a", 2);
            queued.submit("1b", 1);
            queued.submit("3b", 3);

            queued.scheduler.drain();

            assertThat(queued.batches()).containsExactly(List.of("1a", "1b", "2a", "3a", "3b"));
        }
    }

    @Test
    void servesDelayedAfterLiveOnes() {
        try (QueuedRequests queued = new QueuedRequests(DELAYING)) {
            queued.submit("1 late", 1);
            queued.scheduler.advance(11);
            queued.submit("1 live", 1);

            queued.scheduler.drain();

            assertThat(queued.executed()).containsExactly("1 live", "1 late");
        }
    }

    @Test
    void servesDelayedBeforeLowerLevels() {
        try (QueuedRequests queued = new QueuedRequests(DELAYING)) {
            queued.submit("3 live", 3);
            queued.submit("2 late", 2);
            queued.submit("1 late", 1);
            queued.scheduler.advance(11);
            queued.submit("2 live", 2);

            queued.scheduler.drain();

            assertThat(queued.executed()).containsExactly("1 late", "2 live", "2 late", "3 live");
        }
    }

    @Test
    void neverExecutesACancelledDelayedRequest() {
        try (QueuedRequests queued = new QueuedRequests(DELAYING)) {
            Cancellation a = queued.submit("a", 1);
            queued.submit("b", 1);
            Cancellation c = queued.submit("c", 1);
            queued.scheduler.advance(11);

            a.cancel();
            c.cancel();
            queued.submit("d", 1);
            queued.scheduler.drain();

            queued.observer("a").assertError(ErrorCode.CANCELLED, "request was cancelled");
            queued.observer("c").assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(queued.executed()).containsExactly("d", "b");
        }
    }

    @Test
    void removesEmptyLevels() {
        try (QueuedRequests queued = new QueuedRequests(LEVELS)) {
            for (int i = 1; i <= 1_000; i++) {
                queued.submit("gone " + i, i).cancel();
            }
            queued.submit("b", 2_000);
            queued.submit("a", 1_000);

            assertThat(queued.scheduler.queue.waiting()).isEqualTo(2);
            queued.scheduler.drain();
            assertThat(queued.executed()).containsExactly("a", "b");
        }
    }
}
