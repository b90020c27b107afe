package dev.nereid.cuda;

import static dev.nereid.cuda.NativeCalls.call;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * The CUDA driver, {@code libcuda.so.1}. Immutable; safe for use by any thread.
 *
 * <p>Results are read after a success alone: a call that fails leaves what it should write to as it was.
 */
final class LibCuda implements CudaDriver {
    /** The name by which the dynamic linker finds the driver. */
    static final String NAME = "libcuda.so.1";

    private static final int SUCCESS = 0;
    private static final int NOT_READY = 600;
    /** CU_MEMHOSTALLOC_PORTABLE: pinned for all contexts. */
    private static final int PORTABLE = 1;
    /** CU_STREAM_NON_BLOCKING. */
    private static final int NON_BLOCKING = 1;
    /** CU_EVENT_DISABLE_TIMING. */
    private static final int NO_TIMING = 2;

    private static final int NAME_SIZE = 256;
    private static final int UUID_SIZE = 16;

    private final MemorySegment[] addresses = new MemorySegment[CudaFunction.values().length];

    /**
     * Opens the driver.
     *
     * @param library its name, or the path of another library with its functions
     * @throws IOException if it cannot be opened, with the reason, or lacks a function
     */
    LibCuda(String library) throws IOException {
        SharedLibrary opened = SharedLibrary.open(library);
        for (CudaFunction function : CudaFunction.values()) {
            addresses[function.index()] = opened.find(function.symbol());
        }
    }

    @Override
    public int version() {
        return intFrom(CudaFunction.DriverGetVersion, (f, result) -> call(f, result));
    }

    @Override
    public void init() {
        check(CudaFunction.Init, call(address(CudaFunction.Init), 0));
    }

    @Override
    public int deviceCount() {
        return intFrom(CudaFunction.DeviceGetCount, (f, result) -> call(f, result));
    }

    @Override
    public int device(int ordinal) {
        return intFrom(CudaFunction.DeviceGet, (f, result) -> call(f, result, ordinal));
    }

    @Override
    public String name(int device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocate(NAME_SIZE);
            check(
                    CudaFunction.DeviceGetName,
                    call(address(CudaFunction.DeviceGetName), name.address(), NAME_SIZE, device));
            return name.getString(0, StandardCharsets.UTF_8);
        }
    }

    @Override
    public String uuid(int device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment uuid = arena.allocate(UUID_SIZE);
            check(CudaFunction.DeviceGetUuid_v2, call(address(CudaFunction.DeviceGetUuid_v2), uuid.address(), device));
            String digits = HexFormat.of().formatHex(uuid.toArray(ValueLayout.JAVA_BYTE));
            return "GPU-"
                    + String.join(
                            "-",
                            digits.substring(0, 8),
                            digits.substring(8, 12),
                            digits.substring(12, 16),
                            digits.substring(16, 20),
                            digits.substring(20));
        }
    }

    @Override
    public int attribute(int attribute, int device) {
        return intFrom(CudaFunction.DeviceGetAttribute, (f, result) -> call(f, result, attribute, device));
    }

    @Override
    public long totalMemory(int device) {
        return longFrom(CudaFunction.DeviceTotalMem_v2, (f, result) -> call(f, result, device));
    }

    @Override
    public long retainPrimaryContext(int device) {
        return longFrom(CudaFunction.DevicePrimaryCtxRetain, (f, result) -> call(f, result, device));
    }

    @Override
    public void setCurrent(long context) {
        check(CudaFunction.CtxSetCurrent, call(address(CudaFunction.CtxSetCurrent), context));
    }

    @Override
    public long allocate(long byteSize) {
        return longFrom(CudaFunction.MemAlloc_v2, (f, result) -> call(f, result, byteSize));
    }

    @Override
    public void free(long address) {
        check(CudaFunction.MemFree_v2, call(address(CudaFunction.MemFree_v2), address));
    }

    @Override
    public long allocateHost(long byteSize) {
        return longFrom(CudaFunction.MemHostAlloc, (f, result) -> call(f, result, byteSize, PORTABLE));
    }

    @Override
    public void freeHost(long address) {
        check(CudaFunction.MemFreeHost, call(address(CudaFunction.MemFreeHost), address));
    }

    @Override
    public void copyFromHost(long host, long device, long byteSize, long stream) {
        copy(CudaFunction.MemcpyHtoDAsync_v2, device, host, byteSize, stream);
    }

    @Override
    public void copyToHost(long device, long host, long byteSize, long stream) {
        copy(CudaFunction.MemcpyDtoHAsync_v2, host, device, byteSize, stream);
    }

    @Override
    public void copy(long from, long to, long byteSize, long stream) {
        copy(CudaFunction.MemcpyDtoDAsync_v2, to, from, byteSize, stream);
    }

    @Override
    public void fill(long address, byte value, long byteSize, long stream) {
        check(CudaFunction.MemsetD8Async, call(address(CudaFunction.MemsetD8Async), address, value, byteSize, stream));
    }

    @Override
    public long createStream() {
        return longFrom(CudaFunction.StreamCreate, (f, result) -> call(f, result, NON_BLOCKING));
    }

    @Override
    public void destroyStream(long stream) {
        check(CudaFunction.StreamDestroy_v2, call(address(CudaFunction.StreamDestroy_v2), stream));
    }

    @Override
    public void waitFor(long stream, long event) {
        check(CudaFunction.StreamWaitEvent, call(address(CudaFunction.StreamWaitEvent), stream, event, 0));
    }

    @Override
    public long createEvent() {
        return longFrom(CudaFunction.EventCreate, (f, result) -> call(f, result, NO_TIMING));
    }

    @Override
    public void destroyEvent(long event) {
        check(CudaFunction.EventDestroy_v2, call(address(CudaFunction.EventDestroy_v2), event));
    }

    @Override
    public void record(long event, long stream) {
        check(CudaFunction.EventRecord, call(address(CudaFunction.EventRecord), event, stream));
    }

    @Override
    public boolean isDone(long event) {
        int result = call(address(CudaFunction.EventQuery), event);
        if (result == NOT_READY) {
            return false;
        }
        check(CudaFunction.EventQuery, result);
        return true;
    }

    private void copy(CudaFunction function, long to, long from, long byteSize, long stream) {
        check(function, call(address(function), to, from, byteSize, stream));
    }

    private int intFrom(CudaFunction function, ResultCall call) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment result = arena.allocate(ValueLayout.JAVA_INT);
            check(function, call.call(address(function), result.address()));
            return result.get(ValueLayout.JAVA_INT, 0);
        }
    }

    private long longFrom(CudaFunction function, ResultCall call) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment result = arena.allocate(ValueLayout.JAVA_LONG);
            check(function, call.call(address(function), result.address()));
            return result.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    private MemorySegment address(CudaFunction function) {
        return addresses[function.index()];
    }

    private void check(CudaFunction function, int result) {
        if (result != SUCCESS) {
            throw new CudaException(function.symbol(), result, errorName(result));
        }
    }

    @SuppressWarnings("restricted")
    private String errorName(int error) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocate(ValueLayout.JAVA_LONG);
            int result = call(address(CudaFunction.GetErrorName), error, name.address());
            return result != SUCCESS
                    ? "(unknown error)"
                    : MemorySegment.ofAddress(name.get(ValueLayout.JAVA_LONG, 0))
                            .reinterpret(NAME_SIZE)
                            .getString(0, StandardCharsets.UTF_8);
        }
    }

    /** A call that writes its result to an address. */
    @FunctionalInterface
    private interface ResultCall {
        int call(MemorySegment function, long result);
    }
}
