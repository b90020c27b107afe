package dev.nereid.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests of the binding against a library in C that checks what it is passed. */
final class LibCudaTest {
    private static final long MIB = 1 << 20;

    @TempDir
    private Path directory;

    private Path library;
    private LibCuda driver;

    @BeforeEach
    void open() throws IOException, InterruptedException {
        library = StandInLibrary.cuda(directory);
        driver = new LibCuda(library.toString());
    }

    @AfterEach
    void leavesNoMemory() throws IOException {
        assertThat(NativeCalls.call(SharedLibrary.open(library.toString()).find("standin_blocks"), 0))
                .isZero();
    }

    @Test
    void describesDevices() {
        driver.init();

        assertThat(driver.version()).isEqualTo(12040);
        assertThat(driver.deviceCount()).isEqualTo(2);
        int second = driver.device(1);
        assertThat(driver.name(second)).isEqualTo("Stand-in");
        assertThat(driver.uuid(second)).isEqualTo("GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae01");
        assertThat(driver.attribute(CudaDriver.COMPUTE_CAPABILITY_MAJOR, second))
                .isEqualTo(9);
        assertThat(driver.attribute(CudaDriver.COMPUTE_CAPABILITY_MINOR, second))
                .isEqualTo(1);
        assertThat(driver.totalMemory(second)).isEqualTo(80L << 30);
    }

    @Test
    void namesFunctionAndErrorOfFailedCalls() {
        assertFails(driver::deviceCount, 3, "cuDeviceGetCount: 3 CUDA_ERROR_NOT_INITIALIZED");
        driver.init();
        assertFails(() -> driver.device(2), 101, "cuDeviceGet: 101 CUDA_ERROR_INVALID_DEVICE");
        assertFails(() -> driver.allocate(1), 201, "cuMemAlloc_v2: 201 CUDA_ERROR_INVALID_CONTEXT");
        driver.setCurrent(driver.retainPrimaryContext(0));
        assertFails(() -> driver.allocate(2048 * MIB), 2, "cuMemAlloc_v2: 2 CUDA_ERROR_OUT_OF_MEMORY");
        assertFails(() -> driver.allocateHost(0), 1, "cuMemHostAlloc: 1 CUDA_ERROR_INVALID_VALUE");
        assertFails(() -> driver.destroyStream(0), 400, "cuStreamDestroy_v2: 400 CUDA_ERROR_INVALID_HANDLE");
    }

    @Test
    void copiesThroughTheDevice() {
        long stream = stream();
        long pinned = driver.allocateHost(64);
        long first = driver.allocate(64);
        long second = driver.allocate(64);
        MemorySegment host = memory(pinned, 64);
        for (int i = 0; i < 64; i++) {
            host.set(ValueLayout.JAVA_BYTE, i, (byte) i);
        }

        driver.copyFromHost(pinned, first, 64, stream);
        driver.fill(second, (byte) -3, 64, stream);
        driver.copy(first, second, 8, stream);
        driver.copyPeer(
                first + 8, driver.retainPrimaryContext(1), second + 8, driver.retainPrimaryContext(0), 8, stream);
        driver.copyToHost(second, pinned + 32, 32, stream);
        assertThat(host.get(ValueLayout.JAVA_BYTE, 63)).as("before its time").isEqualTo((byte) 63);
        awaitWork(stream);

        for (int i = 0; i < 64; i++) {
            assertThat(host.get(ValueLayout.JAVA_BYTE, i)).isEqualTo((byte) (i < 32 ? i : i < 48 ? i - 32 : -3));
        }
        driver.freeHost(pinned);
        driver.free(first);
        driver.free(second);
        driver.destroyStream(stream);
    }

    private void awaitWork(long stream) {
        long event = driver.createEvent();
        driver.record(event, stream);
        while (!driver.isDone(event)) {
            Thread.onSpinWait();
        }
        driver.destroyEvent(event);
    }

    /** The other stream's work is done when the event that was recorded behind it is awaited, and not before. */
    @Test
    void waitsForOtherStreams() {
        long first = stream();
        long second = driver.createStream();
        long pinned = driver.allocateHost(16);
        long memory = driver.allocate(16);
        long event = driver.createEvent();
        driver.fill(memory, (byte) 5, 16, first);
        driver.record(event, first);
        driver.copyToHost(memory, pinned, 8, second);
        awaitWork(second);
        driver.waitFor(second, event);
        driver.copyToHost(memory, pinned + 8, 8, second);
        awaitWork(second);

        assertThat(memory(pinned, 16).toArray(ValueLayout.JAVA_BYTE))
                .containsExactly(0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 5, 5, 5);
        driver.destroyEvent(event);
        driver.destroyStream(first);
        driver.destroyStream(second);
        driver.freeHost(pinned);
        driver.free(memory);
    }

    @Test
    void seesWhenEventsAreDone() {
        long stream = stream();
        long event = driver.createEvent();

        assertThat(driver.isDone(event)).as("never recorded").isTrue();
        driver.record(event, stream);
        driver.waitFor(stream, event);
        assertThat(driver.isDone(event)).isFalse();
        assertThat(driver.isDone(event)).isTrue();

        driver.destroyEvent(event);
        assertFails(() -> driver.isDone(event), 400, "cuEventQuery: 400 CUDA_ERROR_INVALID_HANDLE");
        driver.destroyStream(stream);
        assertFails(() -> driver.destroyStream(stream), 400, "cuStreamDestroy_v2: 400 CUDA_ERROR_INVALID_HANDLE");
    }

    @Test
    void tellsFailedDevicesFromFailedCalls() throws IOException {
        long event = driverEvent();
        NativeCalls.call(SharedLibrary.open(library.toString()).find("standin_fail"), 700);

        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> driver.isDone(event))
                .withMessage("cuEventQuery: 700 CUDA_ERROR_ILLEGAL_ADDRESS")
                .matches(CudaException::isSticky);
        NativeCalls.call(SharedLibrary.open(library.toString()).find("standin_fail"), 0);
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> driver.allocate(0))
                .matches(e -> !e.isSticky());
    }

    @Test
    void saysWhyALibraryDoesNotOpen() throws IOException {
        Path other = directory.resolve("text.so");
        Files.writeString(other, "no library");

        assertThatExceptionOfType(IOException.class)
                .isThrownBy(() -> new LibCuda(directory.resolve("none.so").toString()))
                .withMessageContaining("none.so: cannot open shared object file: No such file or directory");
        assertThatExceptionOfType(IOException.class)
                .isThrownBy(() -> new LibCuda(other.toString()))
                .withMessageContaining("text.so: ");
        assertThatExceptionOfType(IOException.class)
                .isThrownBy(() -> new LibCuda("libm.so.6"))
                .withMessage("libm.so.6: exports no cuInit");
    }

    @Test
    void launchesKernels() {
        long stream = stream();
        long memory = driver.allocate(64);
        try (Arena arena = Arena.ofConfined()) {
            long module = driver.loadModule(arena.allocateFrom(".version 8.0").address());
            long kernel = driver.function(module, "add");
            MemorySegment address = arena.allocateFrom(ValueLayout.JAVA_LONG, memory);
            MemorySegment number = arena.allocateFrom(ValueLayout.JAVA_INT, 7);
            MemorySegment parameters = arena.allocateFrom(ValueLayout.JAVA_LONG, address.address(), number.address());

            driver.launch(kernel, 3, 128, stream, parameters.address());
            awaitWork(stream);

            assertThat(memory(memory, 4).get(ValueLayout.JAVA_INT, 0)).isEqualTo(3135);
            assertFails(() -> driver.function(module, "sub"), 500, "cuModuleGetFunction: 500 CUDA_ERROR_NOT_FOUND");
            assertFails(
                    () -> driver.loadModule(arena.allocateFrom("nonsense").address()),
                    218,
                    "cuModuleLoadDataEx: 218 CUDA_ERROR_INVALID_PTX: line 1: syntax error");
            driver.unloadModule(module);
            assertFails(() -> driver.unloadModule(module), 400, "cuModuleUnload: 400 CUDA_ERROR_INVALID_HANDLE");
        }
        driver.free(memory);
    }

    @Test
    void capturesGraphs() {
        stream();
        assertThat(driver.greatestPriority()).isEqualTo(-5);
        long stream = driver.createStream(-5);

        driver.beginCapture(stream);
        long graph = driver.endCapture(stream);
        long executable = driver.instantiate(graph);
        driver.destroyGraph(graph);
        driver.launchGraph(executable, stream);
        driver.destroyExecutable(executable);

        assertFails(() -> driver.launchGraph(executable, stream), 400, "cuGraphLaunch: 400 CUDA_ERROR_INVALID_HANDLE");
        assertFails(() -> driver.createStream(1), 1, "cuStreamCreateWithPriority: 1 CUDA_ERROR_INVALID_VALUE");
        driver.destroyStream(stream);
    }

    @Test
    void sharesMemoryWithOtherProcessesAndGpus() {
        stream();
        long memory = driver.allocate(4096);
        assertThat(driver.freeMemory()).isEqualTo((80L << 30) - 1);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(CudaDriver.IPC_HANDLE_SIZE);

            driver.exportMemory(memory, handle.address());
            long opened = driver.openMemory(handle.address());

            assertThat(opened).isEqualTo(memory);
            assertThat(driver.allocationSize(opened)).isEqualTo(4096);
            driver.closeMemory(opened);
            handle.fill((byte) 0);
            assertFails(
                    () -> driver.openMemory(handle.address()), 1, "cuIpcOpenMemHandle_v2: 1 CUDA_ERROR_INVALID_VALUE");
        }
        driver.free(memory);
        assertThat(driver.canAccessPeer(0, 1)).isTrue();
        assertThat(driver.canAccessPeer(0, 0)).isFalse();
        driver.enablePeerAccess(driver.retainPrimaryContext(1));
        driver.enablePeerAccess(driver.retainPrimaryContext(1));
        assertFails(
                () -> driver.enablePeerAccess(driver.retainPrimaryContext(0)),
                1,
                "cuCtxEnablePeerAccess: 1 CUDA_ERROR_INVALID_VALUE");
    }

    private long driverEvent() {
        driver.init();
        driver.setCurrent(driver.retainPrimaryContext(1));
        return driver.createEvent();
    }

    private long stream() {
        driver.init();
        driver.setCurrent(driver.retainPrimaryContext(0));
        return driver.createStream();
    }

    private static void assertFails(Runnable call, int number, String message) {
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(call::run)
                .withMessage(message)
                .matches(e -> e.number() == number);
    }

    @SuppressWarnings("restricted")
    private static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize, Arena.global(), null);
    }
}
