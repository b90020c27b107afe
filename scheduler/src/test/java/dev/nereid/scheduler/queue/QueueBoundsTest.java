package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.scheduler.QueuedRequests;
import dev.nereid.spi.ErrorCode;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** How many requests may wait. */
final class QueueBoundsTest {
    private static final QueuePolicy TWO = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 0, false, 2);
    private static final QueuePolicy TWO_DELAYED = new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, 10, false, 2);

    @Test
    void refusesBeyondTheBound() {
        try (QueuedRequests calls = QueuedRequests.under(TWO)) {
            calls.submit("a");
            calls.submit("b");
            calls.submit("c");
            calls.submit("d");

            assertThat(calls.observer("b").isSilent()).isTrue();
            assertThat(calls.observer("c").hasEnded()).isTrue();
            assertThat(calls.observer("d").hasEnded()).isTrue();
            assertThat(calls.scheduler.queue.waiting()).isEqualTo(2);
            assertThat(calls.scheduler.inFlight()).as("memory is back").isEqualTo(2);
            calls.scheduler.drain();
            assertThat(calls.executed()).containsExactly("a", "b");
        }
    }

    @Test
    void refusesAtOnceWithTheText() {
        try (QueuedRequests calls = QueuedRequests.under(TWO)) {
            calls.submit("a");
            calls.submit("b");
            calls.submit("c");
            calls.submit("");

            calls.observer("c").assertError(ErrorCode.UNAVAILABLE, "[request id: c] Exceeds maximum queue size");
            calls.observer("")
                    .assertError(ErrorCode.UNAVAILABLE, "[request id: <id_unknown>] Exceeds maximum queue size");
        }
    }

    @Test
    void countsEachLevelByItself() {
        QueuePolicy one = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 0, false, 1);
        try (QueuedRequests calls = new QueuedRequests(new PriorityPolicy(3, 2, TWO, Map.of(1L, one)))) {
            calls.submit("1a", 1);
            calls.submit("1b", 1);
            calls.submit("2a", 2);
            calls.submit("2b", 0);
            calls.submit("2c", 7);
            calls.submit("3a", 3);
            calls.submit("1c", 1);

            assertThat(calls.observer("1b").hasEnded()).isTrue();
            assertThat(calls.observer("2c").hasEnded()).isTrue();
            assertThat(calls.observer("1c").hasEnded()).isTrue();
            calls.scheduler.drain();
            assertThat(calls.executed()).containsExactly("1a", "2a", "2b", "3a");
        }
    }

    @Test
    void countsDelayedRequests() {
        try (QueuedRequests calls = QueuedRequests.under(TWO_DELAYED)) {
            calls.submit("a");
            calls.submit("b");
            calls.scheduler.advance(11);

            calls.submit("c");

            assertThat(calls.observer("c").hasEnded()).isTrue();
        }
    }

    @Test
    void countsNotWhatAnInstanceTook() {
        try (QueuedRequests calls = QueuedRequests.under(TWO)) {
            calls.submit("a");
            calls.submit("b");
            calls.scheduler.step();

            calls.submit("c");

            assertThat(calls.observer("c").isSilent()).isTrue();
        }
    }

    @Test
    void aCancelledRequestFreesItsPlace() {
        try (QueuedRequests calls = QueuedRequests.under(TWO)) {
            calls.submit("a");
            Cancellation b = calls.submit("b");

            b.cancel();
            calls.submit("c");
            calls.submit("d");

            assertThat(calls.observer("c").isSilent()).isTrue();
            assertThat(calls.observer("d").hasEnded()).isTrue();
        }
    }

    @Test
    void anExpiredRequestFreesItsPlace() {
        QueuePolicy policy = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 10, false, 1);
        try (QueuedRequests calls = QueuedRequests.under(policy)) {
            calls.submit("a");
            calls.scheduler.advance(11);

            calls.submit("b");

            assertThat(calls.observer("b").isSilent()).isTrue();
        }
    }
}
