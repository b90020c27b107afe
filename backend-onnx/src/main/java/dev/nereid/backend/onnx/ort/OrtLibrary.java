package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.backend.natives.CStrings;
import dev.nereid.backend.natives.ReferenceCount;
import java.io.File;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The loaded ONNX Runtime: native library, functions and environment. Any thread may use it.
 *
 * <p>Closing it lets no further session be opened; the library is unloaded once its last session and its last value are
 * closed – on Linux, where the C library waits for that, also after the end of the threads that ran a model. ONNX
 * Runtime has one environment per loaded file: two of these on one file share it, and with it the thread pools of the
 * one that was opened first.
 */
public final class OrtLibrary implements AutoCloseable {
    /**
     * Minimum severity of the environment's messages. They go to standard error, so only from ERROR on; each session
     * has a separate log.
     */
    private static final OrtLog.Severity ENVIRONMENT_THRESHOLD = OrtLog.Severity.ERROR;

    private static final String ENVIRONMENT_LOG_ID = "nereid";
    /** The header's {@code OrtDeviceAllocator} and {@code OrtMemTypeDefault}. */
    private static final long DEVICE_ALLOCATOR = 0;

    private static final long DEFAULT_MEMORY = 0;

    private final Arena arena = Arena.ofShared();
    private final NativePlatform platform;
    private final OrtApi api;
    private final boolean threadPools;
    private final ReferenceCount references = new ReferenceCount("ONNX Runtime", this::unload);
    private final String directory;
    private final List<String> providers;
    private long environment;
    private long cpuMemory;
    private long allocator;

    @SuppressWarnings("restricted")
    private OrtLibrary(Path file, NativePlatform platform, @Nullable OrtThreads threads) throws OrtException {
        this.platform = platform;
        this.threadPools = threads != null;
        Path library = file.toAbsolutePath();
        directory = library.getParent() + File.separator;
        try (Arena scratch = Arena.ofConfined()) {
            api = OrtApi.of(SymbolLookup.libraryLookup(library, arena));
            providers = readProviders(scratch);
            try {
                initialize(scratch, threads);
            } catch (OrtException | RuntimeException e) {
                releaseHandles();
                throw e;
            }
        } catch (OrtException | RuntimeException e) {
            arena.close();
            throw e;
        }
    }

    /**
     * Loads the library in {@code file}; each session will have separate thread pools.
     *
     * @throws IllegalArgumentException if the file cannot be loaded
     * @throws IllegalStateException if it is not a supported release of ONNX Runtime
     */
    public static OrtLibrary open(Path file, NativePlatform platform) throws OrtException {
        return new OrtLibrary(file, platform, null);
    }

    /** Loads the library like {@link #open(Path, NativePlatform)}, with thread pools that all its sessions share. */
    public static OrtLibrary open(Path file, NativePlatform platform, OrtThreads shared) throws OrtException {
        return new OrtLibrary(file, platform, shared);
    }

    private void initialize(Arena scratch, @Nullable OrtThreads threads) throws OrtException {
        MemorySegment out = scratch.allocate(JAVA_LONG);
        environment = threads == null ? plainEnvironment(scratch, out) : pooledEnvironment(scratch, out, threads);
        api.call(OrtFunction.DisableTelemetryEvents, environment);
        api.call(OrtFunction.CreateCpuMemoryInfo, DEVICE_ALLOCATOR, DEFAULT_MEMORY, out.address());
        cpuMemory = out.get(JAVA_LONG, 0);
        api.call(OrtFunction.GetAllocatorWithDefaultOptions, out.address());
        allocator = out.get(JAVA_LONG, 0); // owned by ONNX Runtime, never released
    }

    private List<String> readProviders(Arena scratch) throws OrtException {
        MemorySegment out = scratch.allocate(JAVA_LONG, 2);
        api.call(OrtFunction.GetAvailableProviders, out.address(), out.address() + JAVA_LONG.byteSize());
        long names = out.get(JAVA_LONG, 0);
        int count = out.get(JAVA_INT, JAVA_LONG.byteSize());
        try {
            return CStrings.readAll(names, count);
        } finally {
            api.call(OrtFunction.ReleaseAvailableProviders, names, count);
        }
    }

    private long plainEnvironment(Arena scratch, MemorySegment out) throws OrtException {
        long logId = CStrings.write(scratch, ENVIRONMENT_LOG_ID);
        api.call(OrtFunction.CreateEnv, ENVIRONMENT_THRESHOLD.number(), logId, out.address());
        return out.get(JAVA_LONG, 0);
    }

    private long pooledEnvironment(Arena scratch, MemorySegment out, OrtThreads threads) throws OrtException {
        api.call(OrtFunction.CreateThreadingOptions, out.address());
        long options = out.get(JAVA_LONG, 0);
        try {
            api.call(OrtFunction.SetGlobalIntraOpNumThreads, options, threads.intraOp());
            api.call(OrtFunction.SetGlobalInterOpNumThreads, options, threads.interOp());
            api.call(OrtFunction.SetGlobalSpinControl, options, threads.spin() ? 1 : 0);
            long logId = CStrings.write(scratch, ENVIRONMENT_LOG_ID);
            api.call(
                    OrtFunction.CreateEnvWithGlobalThreadPools,
                    ENVIRONMENT_THRESHOLD.number(),
                    logId,
                    options,
                    out.address());
            return out.get(JAVA_LONG, 0);
        } finally {
            api.release(OrtFunction.ReleaseThreadingOptions, options);
        }
    }

    /** Returns the functions, usable only from {@link ReferenceCount#retain()} to {@link ReferenceCount#release()}. */
    OrtApi api() {
        return api;
    }

    /** Returns the reference count of the library. Sessions and values retain it for their lifetime. */
    ReferenceCount references() {
        return references;
    }

    /** Returns the release of ONNX Runtime, such as {@code 1.28.0}. */
    public String version() {
        return api.version();
    }

    /**
     * Returns the execution providers that the library was built with, such as {@code CUDAExecutionProvider}. Whether
     * the libraries that they need are on this machine shows when a session with one of them is opened.
     */
    public List<String> providers() {
        return providers;
    }

    /** Returns a message of ONNX Runtime without the directory of the library, which is the server's own business. */
    String withoutDirectory(String message) {
        return message.replace(directory, "");
    }

    NativePlatform platform() {
        return platform;
    }

    public boolean hasThreadPools() {
        return threadPools;
    }

    long environment() {
        return environment;
    }

    /** Returns the handle that describes ordinary memory. */
    long cpuMemory() {
        return cpuMemory;
    }

    /** Returns the handle of ONNX Runtime's allocator of ordinary memory. */
    long allocator() {
        return allocator;
    }

    /** Refuses further sessions. Unloads the library when nothing of it is in use any more. */
    @Override
    public void close() {
        references.close();
    }

    private void unload() {
        releaseHandles();
        arena.close();
    }

    private void releaseHandles() {
        if (cpuMemory != 0) {
            api.release(OrtFunction.ReleaseMemoryInfo, cpuMemory);
        }
        if (environment != 0) {
            api.release(OrtFunction.ReleaseEnv, environment);
        }
    }
}
