package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

final class LeakCheckingMemoryTest {
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @Test
    void allocatesGarbageAlignedTo64Bytes() {
        try (TensorBuffer buffer = memory.allocate(3)) {
            assertThat(buffer.segment().byteSize()).isEqualTo(3);
            assertThat(buffer.segment().address() % 64).isZero();
            assertThat(buffer.segment().toArray(ValueLayout.JAVA_BYTE)).doesNotContain(0);
            assertThat(memory.bytesInUse()).isEqualTo(3);
        }

        memory.close();
        assertThat(memory.bytesInUse()).isZero();
    }

    @Test
    void reportsWhereALeakedBufferWasAllocated() {
        TensorBuffer leaked = memory.allocate(0);

        assertThatThrownBy(memory::close)
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("buffers not closed: 1")
                .satisfies(failure -> assertThat(failure.getSuppressed()[0])
                        .hasStackTraceContaining("reportsWhereALeakedBufferWasAllocated"));
        leaked.close();
        assertThat(memory.buffersInUse()).isZero();
    }

    @Test
    void reportsABufferThatWasClosedTwice() {
        TensorBuffer buffer = memory.allocate(1);
        buffer.close();

        assertThatIllegalStateException().isThrownBy(buffer::close);

        assertThatThrownBy(memory::close).isInstanceOf(AssertionError.class).hasMessageContaining("closed twice: 1");
    }

    @Test
    void runsOut() {
        LeakCheckingMemory small = new LeakCheckingMemory(10);
        small.allocate(8).close();
        TensorBuffer buffer = small.allocate(8);

        assertThatThrownBy(() -> small.allocate(3))
                .isInstanceOf(InferenceException.class)
                .hasMessage("out of memory: 3 bytes wanted, 8 of 10 in use");
        buffer.close();
        small.close();
    }

    @Test
    void refusesAccessToAClosedBuffer() {
        TensorBuffer buffer = memory.allocate(1);
        MemorySegment segment = buffer.segment();
        buffer.close();

        assertThatIllegalStateException().isThrownBy(() -> segment.get(ValueLayout.JAVA_BYTE, 0));
    }
}
