package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendTraits.Execution;
import dev.nereid.spi.BackendTraits.PreferredGroup;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests the traits of backends: defaults, changes and limits. */
final class BackendTraitsTest {
    @Test
    void hasDefaultsForMostBackends() {
        BackendTraits traits = BackendTraits.DEFAULT;

        assertThat(traits.execution()).isEqualTo(Execution.LONG);
        assertThat(traits.preferredGroups()).isEmpty();
        assertThat(traits.parallelInstances()).isFalse();
        assertThat(traits.clientMemory()).isFalse();
        assertThat(traits.places()).containsExactly(MemoryPlace.Kind.HOST, MemoryPlace.Kind.PINNED);
        assertThat(traits.maxDeferred()).isEqualTo(16);
        assertThat(traits).hasToString("LONG executions, 16 deferred, groups [], places [HOST, PINNED]");
    }

    @Test
    void alwaysAcceptsMemoryOfTheHost() {
        BackendTraits device = BackendTraits.DEFAULT.withPlaces(MemoryPlace.Kind.GPU);

        assertThat(device.places())
                .containsExactly(MemoryPlace.Kind.HOST, MemoryPlace.Kind.PINNED, MemoryPlace.Kind.GPU);
        assertThat(device.withPlaces()).isEqualTo(BackendTraits.DEFAULT);
        assertThatThrownBy(() -> device.places().clear()).isInstanceOf(UnsupportedOperationException.class);
        assertThatNullPointerException().isThrownBy(() -> BackendTraits.DEFAULT.withPlaces((MemoryPlace.Kind) null));
    }

    @Test
    void limitsDeferredExecutionsToOneOrMore() {
        assertThat(BackendTraits.DEFAULT.withMaxDeferred(1).maxDeferred()).isEqualTo(1);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> BackendTraits.DEFAULT.withMaxDeferred(0))
                .withMessage("limit: 0 (expected: >= 1)");
    }

    @Test
    void changesOnePropertyAtATime() {
        List<BackendTraits> changed = List.of(
                BackendTraits.DEFAULT,
                BackendTraits.DEFAULT.withExecution(Execution.SHORT),
                BackendTraits.DEFAULT.withPreferredGroups(PreferredGroup.of(Device.Kind.GPU, 2)),
                BackendTraits.DEFAULT.withParallelInstances(),
                BackendTraits.DEFAULT.withClientMemory(),
                BackendTraits.DEFAULT.withPlaces(MemoryPlace.Kind.GPU),
                BackendTraits.DEFAULT.withMaxDeferred(2));

        assertThat(changed).doesNotHaveDuplicates();
        BackendTraits all = all();
        assertThat(all).isEqualTo(all()).hasSameHashCodeAs(all()).isNotIn(changed);
        assertThat(all.execution()).isEqualTo(Execution.SHORT);
        assertThat(all.preferredGroups()).containsExactly(PreferredGroup.of(Device.Kind.GPU, 2));
        assertThat(all.parallelInstances()).isTrue();
        assertThat(all.clientMemory()).isTrue();
        assertThat(all.places()).contains(MemoryPlace.Kind.GPU);
        assertThat(all.maxDeferred()).isEqualTo(2);
        assertThat(all)
                .hasToString("SHORT executions, 2 deferred, groups [2 on GPU], places [HOST, PINNED, GPU],"
                        + " parallel instances, client memory");
    }

    private static BackendTraits all() {
        return BackendTraits.DEFAULT
                .withMaxDeferred(2)
                .withPlaces(MemoryPlace.Kind.GPU)
                .withClientMemory()
                .withParallelInstances()
                .withPreferredGroups(PreferredGroup.of(Device.Kind.GPU, 2))
                .withExecution(Execution.SHORT);
    }
}
