package dev.nereid.scheduler.queue;

import static dev.nereid.scheduler.queue.QueuePolicy.TimeoutAction.REJECT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;

final class QueuePolicyTest {
    private static final QueuePolicy FIXED = new QueuePolicy(REJECT, 5_000, false, 0);
    private static final QueuePolicy OPEN = new QueuePolicy(REJECT, 5_000, true, 0);

    @Test
    void takesTheDefaultTimeout() {
        assertThat(FIXED.timeoutNanos(0)).isEqualTo(5_000);
        assertThat(OPEN.timeoutNanos(0)).isEqualTo(5_000);
    }

    @Test
    void takesAShorterTimeoutIfAllowed() {
        assertThat(OPEN.timeoutNanos(4)).isEqualTo(4_000);
    }

    @Test
    void ignoresALongerTimeout() {
        assertThat(OPEN.timeoutNanos(6)).isEqualTo(5_000);
        assertThat(OPEN.timeoutNanos(-1)).as("unsigned").isEqualTo(5_000);
    }

    @Test
    void ignoresATimeoutThatIsNotAllowed() {
        assertThat(FIXED.timeoutNanos(4)).isEqualTo(5_000);
        assertThat(QueuePolicy.NONE.timeoutNanos(4)).isZero();
    }

    @Test
    void hasNoTimeoutByDefault() {
        assertThat(QueuePolicy.NONE.timeoutNanos(0)).isZero();
    }

    @Test
    void takesTheRequestsTimeoutWithoutADefault() {
        QueuePolicy unlimited = new QueuePolicy(REJECT, 0, true, 0);

        assertThat(unlimited.timeoutNanos(4)).isEqualTo(4_000);
        assertThat(unlimited.timeoutNanos(0)).isZero();
    }

    @Test
    void takesTheLargestTimeoutThatFits() {
        QueuePolicy unlimited = new QueuePolicy(REJECT, 0, true, 0);

        assertThat(unlimited.timeoutNanos(Long.MAX_VALUE / 1_000)).isEqualTo(Long.MAX_VALUE / 1_000 * 1_000);
    }

    @Test
    void cutsWhatDoesNotFit() {
        QueuePolicy unlimited = new QueuePolicy(REJECT, 0, true, 0);

        assertThat(unlimited.timeoutNanos(Long.MAX_VALUE / 1_000 + 1)).isEqualTo(Long.MAX_VALUE);
        assertThat(unlimited.timeoutNanos(-1)).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void admitsUpToTheBound() {
        QueuePolicy two = new QueuePolicy(REJECT, 0, false, 2);

        assertThat(two.admits(1)).isTrue();
        assertThat(two.admits(2)).isFalse();
        assertThat(QueuePolicy.NONE.admits(Long.MAX_VALUE)).isTrue();
    }

    @Test
    void refusesNegativeNumbers() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new QueuePolicy(REJECT, -1, false, 0))
                .withMessage("defaultTimeoutNanos: -1 (expected: >= 0)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new QueuePolicy(REJECT, 0, false, -1))
                .withMessage("maxQueueSize: -1 (expected: >= 0)");
    }
}
