package dev.nereid.backend.onnx.ort;

/**
 * The functions of ONNX Runtime's C API in use, with their index in {@code struct OrtApi}.
 *
 * <p>The struct only ever grows at its end, so a place is valid from the version that introduced the function on;
 * {@link OrtApi} checks the version. The constants carry the header's own names, so that its documentation is found by
 * them. Immutable.
 */
enum OrtFunction {
    GetErrorCode(1),
    GetErrorMessage(2),
    CreateEnv(3),
    DisableTelemetryEvents(6),
    CreateSession(7),
    Run(9),
    CreateSessionOptions(10),
    SetSessionExecutionMode(13),
    EnableMemPattern(16),
    DisableMemPattern(17),
    EnableCpuMemArena(18),
    DisableCpuMemArena(19),
    SetSessionLogId(20),
    SetSessionLogSeverityLevel(22),
    SetSessionGraphOptimizationLevel(23),
    SetIntraOpNumThreads(24),
    SetInterOpNumThreads(25),
    SessionGetInputCount(30),
    SessionGetOutputCount(31),
    SessionGetOverridableInitializerCount(32),
    SessionGetInputTypeInfo(33),
    SessionGetOutputTypeInfo(34),
    SessionGetOverridableInitializerTypeInfo(35),
    SessionGetInputName(36),
    SessionGetOutputName(37),
    SessionGetOverridableInitializerName(38),
    CreateRunOptions(39),
    RunOptionsSetTerminate(46),
    RunOptionsUnsetTerminate(47),
    CreateTensorAsOrtValue(48),
    CreateTensorWithDataAsOrtValue(49),
    GetTensorMutableData(51),
    GetStringTensorDataLength(53),
    GetStringTensorContent(54),
    CastTypeInfoToTensorInfo(55),
    GetOnnxTypeFromTypeInfo(56),
    GetTensorElementType(60),
    GetDimensionsCount(61),
    GetDimensions(62),
    GetSymbolicDimensions(63),
    CreateMemoryInfo(68),
    CreateCpuMemoryInfo(69),
    MemoryInfoGetName(71),
    MemoryInfoGetId(72),
    AllocatorFree(76),
    GetAllocatorWithDefaultOptions(78),
    ReleaseEnv(92),
    ReleaseStatus(93),
    ReleaseMemoryInfo(94),
    ReleaseSession(95),
    ReleaseValue(96),
    ReleaseRunOptions(97),
    ReleaseTypeInfo(98),
    ReleaseSessionOptions(100),
    CreateEnvWithGlobalThreadPools(119),
    DisablePerSessionThreads(120),
    CreateThreadingOptions(121),
    ReleaseThreadingOptions(122),
    GetAvailableProviders(125),
    ReleaseAvailableProviders(126),
    AddSessionConfigEntry(130),
    SetGlobalIntraOpNumThreads(147),
    SetGlobalInterOpNumThreads(148),
    SetGlobalSpinControl(149),
    AddRunConfigEntry(165),
    SessionOptionsAppendExecutionProvider_TensorRT_V2(170),
    CreateTensorRTProviderOptions(171),
    UpdateTensorRTProviderOptions(172),
    ReleaseTensorRTProviderOptions(174),
    GetTensorMemoryInfo(194),
    SessionOptionsAppendExecutionProvider_CUDA_V2(204),
    CreateCUDAProviderOptions(205),
    UpdateCUDAProviderOptions(206),
    ReleaseCUDAProviderOptions(208),
    RegisterCustomOpsLibrary_V2(228),
    GetResizedStringTensorElementBuffer(252),
    SetUserLoggingFunction(266),
    TensorTypeAndShape_HasShape(390),
    GetTensorElementTypeAndShapeDataReference(414);

    private final int index;

    OrtFunction(int index) {
        this.index = index;
    }

    /** Returns the number of function pointers before this one in {@code struct OrtApi}. */
    int index() {
        return index;
    }
}
