package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The GPU build of ONNX Runtime, and memory of the first GPU by the driver's functions. Confined to the test's thread;
 * frees all when it is closed.
 *
 * <p>Tests of the build need its jar, in the system property {@value #JAR}; tests on a GPU need a GPU too, its driver and
 * CUDA 12. Both are skipped without.
 */
@SuppressWarnings("restricted")
public final class TestGpu implements AutoCloseable {
    private static final String JAR = "nereid.onnxruntime-gpu";
    private static final String DRIVER = "libcuda.so.1";

    private final Arena arena = Arena.ofConfined();
    private final SymbolLookup driver;

    private TestGpu() {
        driver = SymbolLookup.libraryLookup(DRIVER, arena);
    }

    /** Returns a loader of the resources of the GPU build; skips the test where its jar is absent. */
    public static ClassLoader artifact() {
        String property = System.getProperty(JAR, "");
        assumeTrue(
                !property.isEmpty() && Files.isRegularFile(Path.of(property)),
                "-D" + JAR + "=<onnxruntime_gpu-1.28.0.jar> is absent: the GPU build of ONNX Runtime");
        try {
            return new URLClassLoader(new URL[] {Path.of(property).toUri().toURL()}, null);
        } catch (MalformedURLException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Opens the first GPU; skips the test where there is none. */
    public static TestGpu open() {
        assumeTrue(isThere(DRIVER), DRIVER + " is absent: the driver of the GPU");
        assumeTrue(isPresent(), "a GPU is absent");
        TestGpu gpu = new TestGpu();
        MemorySegment out = gpu.arena.allocate(JAVA_LONG);
        gpu.call("cuDevicePrimaryCtxRetain", out.address(), 0L);
        gpu.call("cuCtxSetCurrent", out.get(JAVA_LONG, 0));
        return gpu;
    }

    /** Returns whether the machine has a driver that finds a GPU. */
    public static boolean isPresent() {
        if (!isThere(DRIVER)) {
            return false;
        }
        try (TestGpu gpu = new TestGpu()) {
            MemorySegment count = gpu.arena.allocate(JAVA_LONG);
            return gpu.driver.find("cuInit").isPresent()
                    && gpu.result("cuInit", 0L) == 0
                    && gpu.result("cuDeviceGetCount", count.address()) == 0
                    && count.get(JAVA_INT, 0) > 0;
        }
    }

    /** Returns whether the system has a library. */
    public static boolean isThere(String library) {
        try (Arena arena = Arena.ofConfined()) {
            SymbolLookup.libraryLookup(library, arena);
            return true;
        } catch (IllegalArgumentException e) {
            return false;
        }
    }

    /** Allocates memory of the GPU and copies {@code content} there. */
    MemorySegment copyOf(MemorySegment content) {
        MemorySegment memory = allocate(content.byteSize());
        call("cuMemcpyHtoD_v2", memory.address(), content.address(), content.byteSize());
        return memory;
    }

    /** Allocates memory of the GPU, which is freed when this is closed. */
    MemorySegment allocate(long byteSize) {
        MemorySegment out = arena.allocate(JAVA_LONG);
        call("cuMemAlloc_v2", out.address(), byteSize);
        long address = out.get(JAVA_LONG, 0);
        return MemorySegment.ofAddress(address).reinterpret(byteSize, arena, memory -> {
            if (result("cuMemFree_v2", address) != 0) {
                throw new IllegalStateException("cuMemFree failed");
            }
        });
    }

    /** Copies memory of the GPU into {@code target}. */
    void read(MemorySegment memory, MemorySegment target) {
        call("cuMemcpyDtoH_v2", target.address(), memory.address(), memory.byteSize());
    }

    private void call(String function, long... arguments) {
        int result = result(function, arguments);
        if (result != 0) {
            throw new IllegalStateException(function + ": " + result + " (expected: 0)");
        }
    }

    /** Calls a function of the driver. All parameters are pointers, sizes and small numbers. */
    private int result(String function, long... arguments) {
        MemoryLayout[] layouts = new MemoryLayout[arguments.length];
        Object[] values = new Object[arguments.length + 1];
        values[0] = driver.find(function).orElseThrow();
        for (int i = 0; i < arguments.length; i++) {
            layouts[i] = JAVA_LONG;
            values[i + 1] = arguments[i];
        }
        try {
            return (int) Linker.nativeLinker()
                    .downcallHandle(FunctionDescriptor.of(JAVA_INT, layouts))
                    .invokeWithArguments(values);
        } catch (Throwable e) {
            throw new IllegalStateException(function + " failed", e);
        }
    }

    @Override
    public void close() {
        arena.close();
    }
}
