package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Tests the description of sequence batching. */
final class SequenceBatchingTest {
    private final StateSpec state = StateSpec.of("IN", "OUT", DataType.FP32, Shape.of(4));

    @Test
    void isPartOfTheSettings() {
        ControlInput start = new ControlInput(ControlInput.Kind.SEQUENCE_START, "START", DataType.BOOL);
        SequenceBatching batching = SequenceBatching.of(SequenceBatching.Strategy.OLDEST, Duration.ofSeconds(2))
                .with(start)
                .with(state)
                .withIterative();
        ModelSettings settings =
                ModelSettings.builder("m", 1).sequenceBatching(batching).build();

        assertThat(settings.sequenceBatching()).containsSame(batching);
        assertThat(batching.strategy()).isEqualTo(SequenceBatching.Strategy.OLDEST);
        assertThat(batching.maxIdle()).isEqualTo(Duration.ofSeconds(2));
        assertThat(batching.iterative()).isTrue();
        assertThat(batching.controls()).containsExactly(start);
        assertThat(batching.states()).containsExactly(state);
        assertThat(batching.state("OUT")).contains(state);
        assertThat(batching.state("IN")).isEmpty();
    }

    @Test
    void isAbsentByDefault() {
        SequenceBatching plain = SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ZERO);

        assertThat(ModelSettings.builder("m", 1).build().sequenceBatching()).isEmpty();
        assertThat(plain.iterative()).isFalse();
        assertThat(plain.controls()).isEmpty();
        assertThat(plain.states()).isEmpty();
    }

    @Test
    void aStateThatGrowsHasOneBuffer() {
        assertThat(state.sameBuffer()).isFalse();
        assertThat(state.growableMemory()).isFalse();
        assertThat(state.withSameBuffer().sameBuffer()).isTrue();
        assertThat(state.withSameBuffer().growableMemory()).isFalse();
        assertThat(state.withGrowableMemory().sameBuffer()).isTrue();
        assertThat(state.withGrowableMemory().growableMemory()).isTrue();
        assertThat(state.withSameBuffer())
                .isEqualTo(StateSpec.of("IN", "OUT", DataType.FP32, Shape.of(4)).withSameBuffer())
                .isNotEqualTo(state)
                .hasToString("IN -> OUT FP32 [4]");
    }
}
