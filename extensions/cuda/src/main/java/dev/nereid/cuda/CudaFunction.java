package dev.nereid.cuda;

/** The functions of the CUDA driver in use, by the header's own names without the prefix {@code cu}. Immutable. */
enum CudaFunction {
    Init,
    DriverGetVersion,
    GetErrorName,
    DeviceGetCount,
    DeviceGet,
    DeviceGetName,
    DeviceGetUuid_v2,
    DeviceGetAttribute,
    DeviceTotalMem_v2,
    DevicePrimaryCtxRetain,
    CtxSetCurrent,
    MemAlloc_v2,
    MemFree_v2,
    MemHostAlloc,
    MemFreeHost,
    MemcpyHtoDAsync_v2,
    MemcpyDtoHAsync_v2,
    MemcpyDtoDAsync_v2,
    MemcpyPeerAsync,
    MemsetD8Async,
    StreamCreate,
    StreamDestroy_v2,
    StreamWaitEvent,
    EventCreate,
    EventDestroy_v2,
    EventRecord,
    EventQuery,
    StreamCreateWithPriority,
    CtxGetStreamPriorityRange,
    MemGetInfo_v2,
    ModuleLoadDataEx,
    ModuleUnload,
    ModuleGetFunction,
    LaunchKernel,
    StreamBeginCapture_v2,
    StreamEndCapture,
    GraphInstantiateWithFlags,
    GraphLaunch,
    GraphDestroy,
    GraphExecDestroy,
    IpcGetMemHandle,
    IpcOpenMemHandle_v2,
    IpcCloseMemHandle,
    MemGetAddressRange_v2,
    DeviceCanAccessPeer,
    CtxEnablePeerAccess;

    /** Returns the place in an array of all functions. */
    @SuppressWarnings("EnumOrdinal") // arrays of one process, in the order of this list
    int index() {
        return ordinal();
    }

    String symbol() {
        return "cu" + name();
    }
}
