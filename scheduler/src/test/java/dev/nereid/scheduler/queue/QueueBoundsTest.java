package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.scheduler.QueuedRequests;
import dev.nereid.spi.ErrorCode;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Tests the limits of waiting requests. */
final class QueueBoundsTest {
    private static final QueuePolicy TWO = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 0, false, 2);
    private static final QueuePolicy TWO_DELAYED = new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, 10, false, 2);

    @Test
    void refusesBeyondTheBound() {
        try (QueuedRequests queued = QueuedRequests.under(TWO)) {
            queued.submit("a");
            queued.submit("b");
            queued.submit("c");
            queued.submit("d");

            assertThat(queued.observer("b").isSilent()).isTrue();
            assertThat(queued.observer("c").hasEnded()).isTrue();
            assertThat(queued.observer("d").hasEnded()).isTrue();
            assertThat(queued.scheduler.queue.waiting()).isEqualTo(2);
            assertThat(queued.scheduler.inFlight()).as("memory is back").isEqualTo(2);
            queued.scheduler.drain();
            assertThat(queued.executed()).containsExactly("a", "b");
        }
    }

    @Test
    void refusesAtOnceWithTheText() {
        try (QueuedRequests queued = QueuedRequests.under(TWO)) {
            queued.submit("a");
            queued.submit("b");
            queued.submit("c");
            queued.submit("");

            queued.observer("c").assertError(ErrorCode.UNAVAILABLE, "[request id: c] Exceeds maximum queue size");
            queued.observer("")
                    .assertError(ErrorCode.UNAVAILABLE, "[request id: <id_unknown>] Exceeds maximum queue size");
        }
    }

    @Test
    void countsEachLevelByItself() {
        QueuePolicy one = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 0, false, 1);
        try (QueuedRequests queued = new QueuedRequests(new PriorityPolicy(3, 2, TWO, Map.of(1L, one)))) {
            queued.submit("1a", 1);
            queued.submit("1b", 1);
            queued.submit("2a", 2);
            queued.submit("2b", 0);
            queued.submit("2c", 7);
            queued.submit("3a", 3);
            queued.submit("1c", 1);

            assertThat(queued.observer("1b").hasEnded()).isTrue();
            assertThat(queued.observer("2c").hasEnded()).isTrue();
            assertThat(queued.observer("1c").hasEnded()).isTrue();
            queued.scheduler.drain();
            assertThat(queued.executed()).containsExactly("1a", "2a", "2b", "3a");
        }
    }

    @Test
    void countsDelayedRequests() {
        try (QueuedRequests queued = QueuedRequests.under(TWO_DELAYED)) {
            queued.submit("a");
            queued.submit("b");
            queued.scheduler.advance(11);

            queued.submit("c");

            assertThat(queued.observer("c").hasEnded()).isTrue();
        }
    }

    @Test
    void countsNotWhatAnInstanceTook() {
        try (QueuedRequests queued = QueuedRequests.under(TWO)) {
            queued.submit("a");
            queued.submit("b");
            queued.scheduler.step();

            queued.submit("c");

            assertThat(queued.observer("c").isSilent()).isTrue();
        }
    }

    @Test
    void aCancelledRequestFreesItsPlace() {
        try (QueuedRequests queued = QueuedRequests.under(TWO)) {
            queued.submit("a");
            Cancellation b = queued.submit("b");

            b.cancel();
            queued.submit("c");
            queued.submit("d");

            assertThat(queued.observer("c").isSilent()).isTrue();
            assertThat(queued.observer("d").hasEnded()).isTrue();
        }
    }

    @Test
    void anExpiredRequestFreesItsPlace() {
        QueuePolicy policy = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 10, false, 1);
        try (QueuedRequests queued = QueuedRequests.under(policy)) {
            queued.submit("a");
            queued.scheduler.advance(11);

            queued.submit("b");

            assertThat(queued.observer("b").isSilent()).isTrue();
        }
    }
}
