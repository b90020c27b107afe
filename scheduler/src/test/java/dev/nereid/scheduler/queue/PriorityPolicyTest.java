package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.nereid.scheduler.BatchingPolicy;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class PriorityPolicyTest {
    private static final QueuePolicy DEFAULT = new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, 1, false, 0);
    private static final QueuePolicy OWN = new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, 2, false, 0);
    private static final PriorityPolicy THREE = new PriorityPolicy(3, 2, DEFAULT, Map.of(3L, OWN));

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void takesTheRequestedLevel(long level) {
        assertThat(THREE.level(level)).isEqualTo(level);
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 4, Long.MAX_VALUE, Long.MIN_VALUE, -1})
    void takesTheDefaultLevelForZeroAndBeyond(long level) {
        assertThat(THREE.level(level)).isEqualTo(2);
    }

    @Test
    void countsLevelsWithoutASign() {
        PriorityPolicy all = new PriorityPolicy(-1, Long.MIN_VALUE, DEFAULT, Map.of());

        assertThat(all.level(-1)).isEqualTo(-1);
        assertThat(all.level(0)).isEqualTo(Long.MIN_VALUE);
        assertThat(all.isFlat()).isFalse();
    }

    @Test
    void hasOneLevelWithoutLevels() {
        PriorityPolicy none = new PriorityPolicy(0, 7, DEFAULT, Map.of(0L, OWN, 7L, OWN));

        assertThat(none.level(7)).isZero();
        assertThat(none.policy(0)).isEqualTo(DEFAULT);
        assertThat(none.isFlat()).isTrue();
    }

    @Test
    void defaultSchedulerHasOneLevelAndNoLimits() {
        PriorityPolicy priorities = BatchingPolicy.NONE.priorities();

        assertThat(priorities.level(5)).isZero();
        assertThat(priorities.policy(0)).isEqualTo(QueuePolicy.NONE);
    }

    @Test
    void fallsBackToTheDefaultPolicy() {
        assertThat(THREE.policy(1)).isEqualTo(DEFAULT);
        assertThat(THREE.policy(3)).isEqualTo(OWN);
    }

    @Test
    void refusesADefaultLevelThatIsNotThere() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new PriorityPolicy(3, 4, DEFAULT, Map.of()))
                .withMessage("defaultLevel: 4 (expected: 1 to 3)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new PriorityPolicy(3, 0, DEFAULT, Map.of()))
                .withMessage("defaultLevel: 0 (expected: 1 to 3)");
    }
}
