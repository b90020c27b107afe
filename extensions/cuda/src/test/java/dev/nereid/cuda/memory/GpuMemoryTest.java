package dev.nereid.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.cuda.EventPool;
import dev.nereid.cuda.FakeCudaDriver;
import dev.nereid.cuda.GpuContext;
import dev.nereid.testkit.FakeDeviceMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** Tests of the memory of a GPU against a driver whose device memory is that of the host. */
final class GpuMemoryTest {
    private static final long SIZE = 1 << 16;

    private final FakeCudaDriver driver = new FakeCudaDriver();
    private final GpuContext gpu = new GpuContext(driver, 0);
    private final EventPool events = new EventPool(gpu);

    @Test
    void copiesBetweenHostAndDevice() {
        try (GpuMemory memory = new GpuMemory(gpu, events, SIZE);
                TensorBuffer first = memory.allocate(4);
                TensorBuffer second = memory.allocate(4);
                Arena arena = Arena.ofConfined()) {
            MemorySegment heap = MemorySegment.ofArray(new byte[4]);
            MemorySegment host = arena.allocate(4);

            memory.copyFromHost(MemorySegment.ofArray(new byte[] {1, 2, 3, 4}), first.segment());
            memory.copy(first.segment(), second.segment());
            memory.copyToHost(second.segment(), heap);
            memory.copyToHost(second.segment().asSlice(1, 3), host.asSlice(0, 3));

            assertThat(heap.toArray(ValueLayout.JAVA_BYTE)).containsExactly(1, 2, 3, 4);
            assertThat(host.toArray(ValueLayout.JAVA_BYTE)).containsExactly(2, 3, 4, 0);
        }
        events.close();
        assertThat(driver.living()).isZero();
    }

    @Test
    void copiesFromAnotherGpu() {
        GpuContext peer = new GpuContext(driver, 1);
        EventPool peerEvents = new EventPool(peer);
        try (GpuMemory memory = new GpuMemory(gpu, events, SIZE);
                GpuMemory other = new GpuMemory(peer, peerEvents, SIZE);
                TensorBuffer from = other.allocate(4);
                TensorBuffer to = memory.allocate(4)) {
            other.copyFromHost(MemorySegment.ofArray(new byte[] {1, 2, 3, 4}), from.segment());

            assertThat(memory.copyFrom(other, from.segment(), to.segment())).isTrue();

            MemorySegment copy = MemorySegment.ofArray(new byte[4]);
            memory.copyToHost(to.segment(), copy);
            assertThat(copy.toArray(ValueLayout.JAVA_BYTE)).containsExactly(1, 2, 3, 4);
            assertThat(memory.copyFrom(new FakeDeviceMemory(other.place()), MemorySegment.NULL, MemorySegment.NULL))
                    .isFalse();
        }
        peerEvents.close();
    }

    @Test
    void saysHowMuchOfTheGpuIsInUse() {
        GpuMemory memory = new GpuMemory(gpu, events, SIZE);
        assertThat(memory.use()).isEqualTo(new DeviceMemory.Use(SIZE, 1L << 40));

        driver.fail(700);

        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(memory::use)
                .withMessageContaining("700");
    }

    @Test
    void handsOutZeroedMemoryThatJavaCannotTouch() {
        try (GpuMemory memory = new GpuMemory(gpu, events, SIZE)) {
            for (int i = 0; i < 2; i++) {
                try (TensorBuffer buffer = memory.allocate(1000)) {
                    MemorySegment content =
                            MemorySegment.ofArray(new byte[1000]).fill((byte) 7);
                    memory.copyToHost(buffer.segment(), content);
                    assertThat(content.toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
                    assertThatIllegalStateException()
                            .isThrownBy(() -> buffer.segment().get(ValueLayout.JAVA_BYTE, 0));
                    memory.copyFromHost(content.fill((byte) 7), buffer.segment());
                }
            }
            assertThat(memory.bytesInUse()).isZero();
        }
    }

    @Test
    void takesNothingFromTheDriverForRequests() {
        try (GpuMemory memory = new GpuMemory(gpu, events, SIZE)) {
            for (int i = 0; i < 1000; i++) {
                memory.allocate(i).close();
            }
            assertThat(driver.allocations()).isEqualTo(1);
            assertThat(driver.events()).isEqualTo(1);
        }
    }

    @Test
    void refusesMoreThanItHas() {
        try (GpuMemory memory = new GpuMemory(gpu, events, SIZE)) {
            TensorBuffer buffer = memory.allocate(SIZE - 256);
            assertThatExceptionOfType(InferenceException.class)
                    .isThrownBy(() -> memory.allocate(257))
                    .withMessage("no memory for a tensor of 257 bytes on GPU 0: 65280 of 65536 bytes are in use");
            assertThatIllegalStateException().isThrownBy(memory::close);
            buffer.close();
            assertThatIllegalStateException().isThrownBy(buffer::close);
            memory.allocate(SIZE).close();
        }
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(() -> new GpuMemory(gpu, events, 1L << 33))
                .withMessage("GPU 0: cuMemAlloc_v2: 2 CUDA_ERROR_OUT_OF_MEMORY");
        assertThat(gpu.failure()).isEmpty();
    }

    @Test
    void isLostWithTheGpu() {
        GpuMemory memory = new GpuMemory(gpu, events, SIZE);
        TensorBuffer buffer = memory.allocate(4);
        driver.fail(700);

        for (String message : new String[] {
            "GPU 0: cuCtxSetCurrent: 700 CUDA_ERROR",
            "GPU 0: has failed: cuCtxSetCurrent: 700 CUDA_ERROR: restart the server"
        }) {
            assertThatExceptionOfType(InferenceException.class)
                    .isThrownBy(() -> memory.allocate(4))
                    .withMessage(message);
        }
        buffer.close();
        assertThat(memory.bytesInUse()).isZero();
        memory.close();
        events.close();
        assertThat(gpu.failure()).hasValueSatisfying(e -> assertThat(e.number()).isEqualTo(700));
    }

    @Test
    void pinnedMemoryLeavesTheRestToOrdinaryMemory() {
        PinnedMemory pinned = new PinnedMemory(gpu, SIZE);
        TensorBuffer buffer = pinned.allocate(SIZE - 256).orElseThrow();
        buffer.segment().fill((byte) 1);

        assertThat(pinned.allocate(257)).isEmpty();
        assertThatIllegalStateException().isThrownBy(pinned::close);
        buffer.close();
        assertThatIllegalStateException().isThrownBy(buffer::close);
        assertThat(pinned.bytesInUse()).isZero();
        pinned.close();
        assertThatIllegalStateException().isThrownBy(() -> buffer.segment().get(ValueLayout.JAVA_BYTE, 0));
        assertThat(driver.living()).isZero();
    }
}
