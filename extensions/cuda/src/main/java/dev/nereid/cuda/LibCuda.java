package dev.nereid.cuda;

import static dev.nereid.cuda.NativeCalls.call;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/** The CUDA driver, {@code libcuda.so.1}. Immutable; safe for use by any thread. */
final class LibCuda implements CudaDriver {
    /** The name by which the dynamic linker finds the driver. */
    static final String NAME = "libcuda.so.1";

    private static final int NOT_READY = 600;
    /** CU_MEMHOSTALLOC_PORTABLE: pinned for all contexts. */
    private static final int PORTABLE = 1;
    /** CU_STREAM_NON_BLOCKING. */
    private static final int NON_BLOCKING = 1;
    /** CU_EVENT_DISABLE_TIMING. */
    private static final int NO_TIMING = 2;

    /** CU_JIT_ERROR_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES. */
    private static final int ERROR_LOG = 5;

    private static final int ERROR_LOG_SIZE = 6;
    private static final int LOG_SIZE = 4096;
    /** CU_STREAM_CAPTURE_MODE_THREAD_LOCAL. */
    private static final int OF_THIS_THREAD = 1;
    /** CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS. */
    private static final int LAZY_PEER_ACCESS = 1;

    private static final int PEER_ACCESS_ALREADY_ENABLED = 704;

    private static final int NAME_SIZE = 256;
    private static final int UUID_SIZE = 16;

    private final DriverFunctions functions;

    /** Opens the driver by the name or path of a library; fails, with the reason, without it or a function. */
    LibCuda(String library) throws IOException {
        functions = new DriverFunctions(library);
    }

    @Override
    public int version() {
        return functions.intFrom(CudaFunction.DriverGetVersion, (f, result) -> call(f, result));
    }

    @Override
    public void init() {
        functions.check(CudaFunction.Init, call(functions.address(CudaFunction.Init), 0));
    }

    @Override
    public int deviceCount() {
        return functions.intFrom(CudaFunction.DeviceGetCount, (f, result) -> call(f, result));
    }

    @Override
    public int device(int ordinal) {
        return functions.intFrom(CudaFunction.DeviceGet, (f, result) -> call(f, result, ordinal));
    }

    @Override
    public String name(int device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocate(NAME_SIZE);
            functions.check(
                    CudaFunction.DeviceGetName,
                    call(functions.address(CudaFunction.DeviceGetName), name.address(), NAME_SIZE, device));
            return name.getString(0, StandardCharsets.UTF_8);
        }
    }

    @Override
    public String uuid(int device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment uuid = arena.allocate(UUID_SIZE);
            functions.check(
                    CudaFunction.DeviceGetUuid_v2,
                    call(functions.address(CudaFunction.DeviceGetUuid_v2), uuid.address(), device));
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
        return functions.intFrom(CudaFunction.DeviceGetAttribute, (f, result) -> call(f, result, attribute, device));
    }

    @Override
    public long totalMemory(int device) {
        return functions.longFrom(CudaFunction.DeviceTotalMem_v2, (f, result) -> call(f, result, device));
    }

    @Override
    public long retainPrimaryContext(int device) {
        return functions.longFrom(CudaFunction.DevicePrimaryCtxRetain, (f, result) -> call(f, result, device));
    }

    @Override
    public void setCurrent(long context) {
        functions.check(CudaFunction.CtxSetCurrent, call(functions.address(CudaFunction.CtxSetCurrent), context));
    }

    @Override
    public long allocate(long byteSize) {
        return functions.longFrom(CudaFunction.MemAlloc_v2, (f, result) -> call(f, result, byteSize));
    }

    @Override
    public void free(long address) {
        functions.check(CudaFunction.MemFree_v2, call(functions.address(CudaFunction.MemFree_v2), address));
    }

    @Override
    public long allocateHost(long byteSize) {
        return functions.longFrom(CudaFunction.MemHostAlloc, (f, result) -> call(f, result, byteSize, PORTABLE));
    }

    @Override
    public void freeHost(long address) {
        functions.check(CudaFunction.MemFreeHost, call(functions.address(CudaFunction.MemFreeHost), address));
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
    public void copy(long source, long target, long byteSize, long stream) {
        copy(CudaFunction.MemcpyDtoDAsync_v2, target, source, byteSize, stream);
    }

    @Override
    public void copyPeer(long source, long sourceContext, long target, long targetContext, long byteSize, long stream) {
        functions.check(
                CudaFunction.MemcpyPeerAsync,
                call(
                        functions.address(CudaFunction.MemcpyPeerAsync),
                        target,
                        targetContext,
                        source,
                        sourceContext,
                        byteSize,
                        stream));
    }

    @Override
    public void fill(long address, byte value, long byteSize, long stream) {
        functions.check(
                CudaFunction.MemsetD8Async,
                call(functions.address(CudaFunction.MemsetD8Async), address, value, byteSize, stream));
    }

    @Override
    public long createStream() {
        return functions.longFrom(CudaFunction.StreamCreate, (f, result) -> call(f, result, NON_BLOCKING));
    }

    @Override
    public void destroyStream(long stream) {
        functions.check(CudaFunction.StreamDestroy_v2, call(functions.address(CudaFunction.StreamDestroy_v2), stream));
    }

    @Override
    public void waitFor(long stream, long event) {
        functions.check(
                CudaFunction.StreamWaitEvent, call(functions.address(CudaFunction.StreamWaitEvent), stream, event, 0));
    }

    @Override
    public long createEvent() {
        return functions.longFrom(CudaFunction.EventCreate, (f, result) -> call(f, result, NO_TIMING));
    }

    @Override
    public void destroyEvent(long event) {
        functions.check(CudaFunction.EventDestroy_v2, call(functions.address(CudaFunction.EventDestroy_v2), event));
    }

    @Override
    public void record(long event, long stream) {
        functions.check(CudaFunction.EventRecord, call(functions.address(CudaFunction.EventRecord), event, stream));
    }

    @Override
    public boolean isDone(long event) {
        int result = call(functions.address(CudaFunction.EventQuery), event);
        if (result == NOT_READY) {
            return false;
        }
        functions.check(CudaFunction.EventQuery, result);
        return true;
    }

    @Override
    public long createStream(int priority) {
        return functions.longFrom(
                CudaFunction.StreamCreateWithPriority, (f, result) -> call(f, result, NON_BLOCKING, priority));
    }

    @Override
    public int greatestPriority() {
        return (int) functions.longOfTwo(
                CudaFunction.CtxGetStreamPriorityRange, 1, (f, least, greatest) -> call(f, least, greatest));
    }

    @Override
    public long freeMemory() {
        return functions.longOfTwo(CudaFunction.MemGetInfo_v2, 0, (f, free, total) -> call(f, free, total));
    }

    @Override
    public long loadModule(long image) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment module = arena.allocate(ValueLayout.JAVA_LONG);
            MemorySegment log = arena.allocate(LOG_SIZE);
            MemorySegment options = arena.allocateFrom(ValueLayout.JAVA_INT, ERROR_LOG, ERROR_LOG_SIZE);
            MemorySegment values = arena.allocateFrom(ValueLayout.JAVA_LONG, log.address(), LOG_SIZE);
            int result = call(
                    functions.address(CudaFunction.ModuleLoadDataEx),
                    module.address(),
                    image,
                    2,
                    options.address(),
                    values.address());
            functions.check(
                    CudaFunction.ModuleLoadDataEx,
                    result,
                    log.getString(0, StandardCharsets.UTF_8).strip());
            return module.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    @Override
    public void unloadModule(long module) {
        functions.check(CudaFunction.ModuleUnload, call(functions.address(CudaFunction.ModuleUnload), module));
    }

    @Override
    public long function(long module, String name) {
        try (Arena arena = Arena.ofConfined()) {
            long text = arena.allocateFrom(name).address();
            return functions.longFrom(CudaFunction.ModuleGetFunction, (f, result) -> call(f, result, module, text));
        }
    }

    @Override
    public void launch(long function, int blocks, int threads, long stream, long parameters) {
        functions.check(
                CudaFunction.LaunchKernel,
                NativeCalls.launch(
                        functions.address(CudaFunction.LaunchKernel), function, blocks, threads, stream, parameters));
    }

    @Override
    public void beginCapture(long stream) {
        functions.check(
                CudaFunction.StreamBeginCapture_v2,
                call(functions.address(CudaFunction.StreamBeginCapture_v2), stream, OF_THIS_THREAD));
    }

    @Override
    public long endCapture(long stream) {
        return functions.longFrom(CudaFunction.StreamEndCapture, (f, result) -> call(f, stream, result));
    }

    @Override
    public long instantiate(long graph) {
        return functions.longFrom(CudaFunction.GraphInstantiateWithFlags, (f, result) -> call(f, result, graph, 0L));
    }

    @Override
    public void launchGraph(long executable, long stream) {
        functions.check(
                CudaFunction.GraphLaunch, call(functions.address(CudaFunction.GraphLaunch), executable, stream));
    }

    @Override
    public void destroyGraph(long graph) {
        functions.check(CudaFunction.GraphDestroy, call(functions.address(CudaFunction.GraphDestroy), graph));
    }

    @Override
    public void destroyExecutable(long executable) {
        functions.check(
                CudaFunction.GraphExecDestroy, call(functions.address(CudaFunction.GraphExecDestroy), executable));
    }

    @Override
    public void exportMemory(long address, long handle) {
        functions.check(
                CudaFunction.IpcGetMemHandle, call(functions.address(CudaFunction.IpcGetMemHandle), handle, address));
    }

    @Override
    @SuppressWarnings("restricted")
    public long openMemory(long handle) {
        MemorySegment bytes = MemorySegment.ofAddress(handle).reinterpret(IPC_HANDLE_SIZE);
        return functions.longFrom(
                CudaFunction.IpcOpenMemHandle_v2, (f, result) -> NativeCalls.open(f, result, bytes, LAZY_PEER_ACCESS));
    }

    @Override
    public void closeMemory(long address) {
        functions.check(
                CudaFunction.IpcCloseMemHandle, call(functions.address(CudaFunction.IpcCloseMemHandle), address));
    }

    @Override
    public long allocationSize(long address) {
        return functions.longOfTwo(
                CudaFunction.MemGetAddressRange_v2, 1, (f, base, size) -> call(f, base, size, address));
    }

    @Override
    public boolean canAccessPeer(int device, int peer) {
        return functions.intFrom(CudaFunction.DeviceCanAccessPeer, (f, result) -> call(f, result, device, peer)) != 0;
    }

    @Override
    public void enablePeerAccess(long peerContext) {
        int result = call(functions.address(CudaFunction.CtxEnablePeerAccess), peerContext, 0);
        if (result != PEER_ACCESS_ALREADY_ENABLED) {
            functions.check(CudaFunction.CtxEnablePeerAccess, result);
        }
    }

    private void copy(CudaFunction function, long target, long source, long byteSize, long stream) {
        functions.check(function, call(functions.address(function), target, source, byteSize, stream));
    }
}
