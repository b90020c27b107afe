package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

final class FakeDeviceMemoryTest {
    private static final MemoryPlace GPU = new MemoryPlace(MemoryPlace.Kind.GPU, 3);

    private final FakeDeviceMemory device = new FakeDeviceMemory(GPU);

    @Test
    void cannotBeAccessedByJavaCode() {
        try (TensorBuffer buffer = device.allocate(8)) {
            MemorySegment segment = buffer.segment();

            assertThat(segment.byteSize()).isEqualTo(8);
            assertThat(segment.address() % 64).isZero();
            assertThatIllegalStateException().isThrownBy(() -> segment.get(ValueLayout.JAVA_BYTE, 0));
            assertThatIllegalStateException().isThrownBy(() -> segment.fill((byte) 1));
            assertThatIllegalStateException()
                    .isThrownBy(() -> segment.asSlice(4, 4).toArray(ValueLayout.JAVA_BYTE));
        }
    }

    @Test
    void copiesAndCounts() {
        MemorySegment host = Arena.ofAuto().allocate(8);
        try (TensorBuffer buffer = device.allocate(16)) {
            MemorySegment part = buffer.segment().asSlice(8, 8);
            host.setAtIndex(ValueLayout.JAVA_FLOAT, 0, 5);
            device.copyFromHost(host, part);
            host.fill((byte) 0);
            device.copyToHost(part, host);

            assertThat(host.getAtIndex(ValueLayout.JAVA_FLOAT, 0)).isEqualTo(5);
            assertThat(device.floats(buffer.segment())).containsExactly(0, 0, 5, 0);
            assertThat(device.copiesFromHost()).isEqualTo(1);
            assertThat(device.copiesToHost()).isEqualTo(1);
        }
    }

    @Test
    void makesTensors() {
        try (TensorBuffer buffer = device.allocate(8)) {
            Tensor tensor = device.floats(buffer, Shape.of(2), 1, 2);

            assertThat(tensor.place()).isEqualTo(GPU);
            assertThat(device.floats(tensor.data())).containsExactly(1, 2);
            assertThat(device.copiesFromHost()).isZero();
        }
    }

    @Test
    void copiesWithin() {
        try (TensorBuffer one = device.allocate(8);
                TensorBuffer other = device.allocate(8)) {
            device.write(MemorySegment.ofArray(new float[] {1, 2}), one.segment());

            device.copy(one.segment(), other.segment());

            assertThat(device.floats(other.segment())).containsExactly(1, 2);
            assertThat(device.copies()).isEqualTo(1);
        }
    }

    @Test
    void refusesOtherMemory() {
        MemorySegment host = Arena.ofAuto().allocate(8);
        try (TensorBuffer buffer = device.allocate(4)) {
            assertThatIllegalArgumentException().isThrownBy(() -> device.copyToHost(buffer.segment(), host));
            assertThatIllegalStateException().isThrownBy(() -> device.copyToHost(host, host));
            assertThatIllegalArgumentException().isThrownBy(() -> device.copy(buffer.segment(), host));
            assertThatIllegalStateException().isThrownBy(() -> device.copy(host, host));
        }
        assertThatIllegalArgumentException().isThrownBy(() -> new FakeDeviceMemory(MemoryPlace.HOST));
    }

    @Test
    void detectsLeaksAndDoubleCloses() {
        LeakCheckingMemory memory = new LeakCheckingMemory(device);
        TensorBuffer buffer = memory.allocate(8, GPU);

        assertThat(device.buffersInUse()).isEqualTo(1);
        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(memory::close)
                .withMessage("buffers in " + GPU + " not closed: 1, closed twice: 0 (expected: none)");
        buffer.close();
        memory.close();
        assertThatIllegalStateException().isThrownBy(buffer::close);
        assertThatExceptionOfType(AssertionError.class).isThrownBy(memory::close);
    }

    @Test
    void isFoundByItsPlace() {
        LeakCheckingMemory memory = new LeakCheckingMemory(device);

        assertThat(memory.device(GPU)).containsSame(device);
        assertThat(memory.device(new MemoryPlace(MemoryPlace.Kind.GPU, 0))).isEmpty();
        try (TensorBuffer pinned = memory.allocate(1, new MemoryPlace(MemoryPlace.Kind.PINNED, 0))) {
            assertThat(pinned.segment().fill((byte) 7).get(ValueLayout.JAVA_BYTE, 0))
                    .isEqualTo((byte) 7);
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> memory.allocate(1, new MemoryPlace(MemoryPlace.Kind.GPU, 0)));
    }
}
