package dev.nereid.server.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TensorMemoryBoundTest {
    private static final long MIB = 1L << 20;

    @ParameterizedTest
    @CsvSource({
        "2048, 512, 768",
        "2048, 1024, 512",
        "16384, 4096, 6144",
        "1000, 700, 150",
        "640, 512, 64",
        "262144, 65536, 98304",
    })
    void takesHalfOfWhatTheHeapLeaves(long memory, long heap, long bound) {
        TensorMemoryBound derived = TensorMemoryBound.derive(memory * MIB, heap * MIB);

        assertThat(derived.bytes()).isEqualTo(bound * MIB);
        assertThat(derived.shortage()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"512, 512", "512, 1024", "600, 512", "0, 512"})
    void takesTheMinimumAndReportsItWhereTheHeapLeavesTooLittle(long memory, long heap) {
        TensorMemoryBound derived = TensorMemoryBound.derive(memory * MIB, heap * MIB);

        assertThat(derived.bytes()).isEqualTo(64 * MIB);
        assertThat(derived.shortage())
                .isEqualTo("a heap of " + heap + " MiB leaves too little of " + memory
                        + " MiB: lower -Xmx in NEREID_JAVA_OPTIONS, or set --tensor-memory-pool-byte-size");
    }

    @Test
    void leavesAQuarterForOutputs() {
        assertThat(TensorMemoryBound.of(1000).inFlightBytes()).isEqualTo(750);
        assertThat(TensorMemoryBound.of(1).inFlightBytes()).isEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource({"0", "-1"})
    void refusesBoundsWithoutMemory(long bytes) {
        assertThatThrownBy(() -> TensorMemoryBound.of(bytes))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("memoryLimit: " + bytes + " (expected: 1 byte or more)");
    }
}
