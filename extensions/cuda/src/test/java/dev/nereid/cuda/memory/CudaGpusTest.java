package dev.nereid.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.FakeCudaDriver;
import dev.nereid.cuda.Gpu;
import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuDiscovery;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Tests of what the server does with GPUs, against a driver whose device memory is that of the host. */
final class CudaGpusTest {
    private static final MemoryPlace FIRST = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
    private static final MemoryPlace SECOND = new MemoryPlace(MemoryPlace.Kind.GPU, 1);

    private final FakeCudaDriver driver = new FakeCudaDriver();

    @Test
    void takesMemoryOfEachGpuAndPinnedMemoryOnce() {
        try (CudaGpus gpus = open(new GpuOptions(1 << 16, Map.of(1, 1L << 12), 6, 0, true))) {
            assertThat(gpus.numbers()).containsExactly(0, 1);
            assertThat(gpus.uuid(1)).isPresent();
            assertThat(gpus.uuid(2)).isEmpty();
            assertThat(gpus.report()).containsExactly("two GPUs");
            assertThat(driver.allocations()).isEqualTo(3);

            DeviceMemory second = gpus.memory(SECOND).orElseThrow();
            assertThat(second.place()).isEqualTo(SECOND);
            second.allocate(1 << 12).close();
            assertThatExceptionOfType(InferenceException.class)
                    .isThrownBy(() -> second.allocate((1 << 12) + 1))
                    .withMessageStartingWith("no memory for a tensor of 4097 bytes on GPU 1: ");
            gpus.memory(FIRST).orElseThrow().allocate(1 << 20).close();
            assertThat(gpus.memory(MemoryPlace.HOST)).isEmpty();
            assertThat(gpus.memory(new MemoryPlace(MemoryPlace.Kind.GPU, 2))).isEmpty();

            TensorBuffer pinned = gpus.allocatePinned(1 << 16).orElseThrow();
            assertThat(pinned.place().kind()).isEqualTo(MemoryPlace.Kind.PINNED);
            assertThat(gpus.allocatePinned(1)).isEmpty();
            assertThat(gpus.pinnedUse()).contains(new DeviceMemory.Use(1 << 16, 1 << 16));
            pinned.close();
        }
        assertThat(driver.living()).isZero();
    }

    @Test
    void leavesOutWhatItCannotUse() {
        long tooMuch = 1L << 33;
        try (CudaGpus gpus = open(new GpuOptions(tooMuch, Map.of(0, tooMuch), 9, 1, true))) {
            assertThat(gpus.numbers()).as("compute capability 9.0 and 9.1").containsExactly(1);
            assertThat(gpus.report())
                    .containsExactly(
                            "two GPUs",
                            "GPU 0: not used: compute capability 9.0 (expected: at least 9.1; see"
                                    + " --min-supported-compute-capability)",
                            "no pinned memory: GPU 1: cuMemAlloc_v2: 2 CUDA_ERROR_OUT_OF_MEMORY for 8589934592 bytes;"
                                    + " see --pinned-memory-pool-byte-size");
            assertThat(gpus.allocatePinned(1)).isEmpty();
        }
        try (CudaGpus gpus = open(new GpuOptions(0, Map.of(0, tooMuch), 6, 0, false))) {
            assertThat(gpus.report())
                    .containsExactly(
                            "two GPUs",
                            "GPU 0: no memory for tensors: GPU 0: cuMemAlloc_v2: 2 CUDA_ERROR_OUT_OF_MEMORY for"
                                    + " 8589934592 bytes; see --cuda-memory-pool-byte-size");
            DeviceMemory none = gpus.memory(FIRST).orElseThrow();
            assertThatExceptionOfType(InferenceException.class).isThrownBy(() -> none.allocate(1));
        }
        assertThat(driver.living()).isZero();
    }

    @Test
    void opensMemoryOfClientsAndChecksItsSize() {
        GpuContext client = new GpuContext(driver, 0);
        long memory = client.call(it -> it.allocate(4096));
        ByteBuffer handle = ByteBuffer.allocate(CudaDriver.IPC_HANDLE_SIZE)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(0, memory);
        CudaGpus gpus = open(new GpuOptions(0, Map.of(), 6, 0, false));

        GpuAccess.Opened opened = gpus.open(handle, 0, 4096);
        assertThat(opened.segment().address()).isEqualTo(memory);
        assertThat(opened.segment().byteSize()).isEqualTo(4096);
        assertInvalid(
                () -> gpus.open(handle, 0, 4097), "byte_size 4097 (expected: at most 4096, the size of the memory)");
        assertInvalid(
                () -> gpus.open(ByteBuffer.allocate(CudaDriver.IPC_HANDLE_SIZE), 1, 1),
                "the handle opens no memory: GPU 1: cuIpcOpenMemHandle_v2: 1 CUDA_ERROR_INVALID_VALUE (expected: a handle"
                        + " of cudaIpcGetMemHandle of a process that lives)");
        assertThatIllegalArgumentException().isThrownBy(() -> gpus.open(handle, 7, 1));
        opened.close();
        opened.close();
        gpus.close();
        gpus.close();

        assertThat(driver.opened()).isZero();
        client.run(it -> it.free(memory));
        assertThat(driver.living()).isZero();
    }

    @Test
    void remembersTheFailureOfAGpu() {
        CudaGpus gpus = open(new GpuOptions(0, Map.of(), 6, 0, false));
        assertThat(gpus.failure()).isEmpty();
        driver.fail(700);
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(() -> gpus.memory(SECOND).orElseThrow().allocate(8));

        gpus.check();
        assertThat(gpus.failure())
                .as("the driver fails for both")
                .contains("GPU 0 has failed: cuCtxSetCurrent: 700 CUDA_ERROR: restart the server");
        assertThatExceptionOfType(InferenceException.class)
                .as("not the client's error")
                .isThrownBy(() -> gpus.open(ByteBuffer.allocate(CudaDriver.IPC_HANDLE_SIZE), 0, 1))
                .withMessageStartingWith("GPU 0 has failed: ")
                .matches(e -> e.code() == ErrorCode.UNAVAILABLE);
        gpus.close();
    }

    @Test
    void givesNothingOutAfterItsClose() {
        CudaGpus gpus = open(new GpuOptions(1 << 16, Map.of(), 6, 0, false));
        gpus.close();

        assertThat(gpus.failure()).isEmpty();
        assertThat(gpus.memory(FIRST)).isEmpty();
        assertThat(gpus.allocatePinned(8)).isEmpty();
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(() -> gpus.open(ByteBuffer.allocate(CudaDriver.IPC_HANDLE_SIZE), 0, 1))
                .matches(e -> e.code() == ErrorCode.UNAVAILABLE);
        assertThat(driver.living()).isZero();
    }

    @Test
    void leavesMemoryThatIsInUse() {
        CudaGpus gpus = open(new GpuOptions(1 << 16, Map.of(), 6, 0, false));
        TensorBuffer used = gpus.memory(FIRST).orElseThrow().allocate(8);
        gpus.close();

        assertThat(driver.living()).as("the memory, its streams and its event").isEqualTo(5);
        used.close();
    }

    @Test
    void isEmptyWithoutADriver() {
        GpuDiscovery none = new GpuDiscovery(List.of(), "no GPU: CUDA driver: not found", Optional.empty());
        try (CudaGpus gpus = CudaGpus.open(none, GpuOptions.DEFAULT)) {
            assertThat(gpus.numbers()).isEmpty();
            assertThat(gpus.report()).containsExactly("no GPU: CUDA driver: not found");
            assertThat(gpus.allocatePinned(0)).isEmpty();
            assertThat(gpus.pinnedUse()).isEmpty();
            assertThat(gpus.memory(FIRST)).isEmpty();
            assertThat(gpus.failure()).isEmpty();
        }
    }

    private CudaGpus open(GpuOptions options) {
        List<Gpu> found =
                List.of(new Gpu(0, "First", "GPU-0", 9, 0, 1L << 36), new Gpu(1, "Second", "GPU-1", 9, 1, 1L << 36));
        return CudaGpus.open(new GpuDiscovery(found, "two GPUs", Optional.of(driver)), options);
    }

    private static void assertInvalid(Runnable call, String message) {
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(call::run)
                .withMessage(message)
                .matches(e -> e.code() == ErrorCode.INVALID_ARGUMENT);
    }
}
