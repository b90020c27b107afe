package dev.nereid.backend.tensorflow.capi;

/**
 * The functions of TensorFlow's C API in use, by the header's own names without the prefix {@code TF_}. Immutable.
 *
 * <p>They are looked up by name, so that any release of TensorFlow 2 that exports them will do.
 */
enum TfFunction {
    Version,
    NewStatus,
    DeleteStatus,
    GetCode,
    Message,
    NewBuffer,
    DeleteBuffer,
    NewGraph,
    DeleteGraph,
    NewSessionOptions,
    DeleteSessionOptions,
    SetConfig,
    LoadSessionFromSavedModel,
    NewSession,
    CloseSession,
    DeleteSession,
    SessionRun,
    SessionListDevices,
    DeviceListCount,
    DeviceListType,
    DeleteDeviceList,
    NewImportGraphDefOptions,
    DeleteImportGraphDefOptions,
    GraphImportGraphDef,
    GraphOperationByName,
    GraphNextOperation,
    OperationOpType,
    OperationNumOutputs,
    OperationOutputType,
    GraphGetTensorNumDims,
    GraphGetTensorShape,
    NewTensor,
    DeleteTensor,
    TensorType,
    NumDims,
    Dim,
    TensorByteSize,
    TensorData,
    StringInit,
    StringAssignView,
    StringGetDataPointer,
    StringGetSize,
    LoadLibrary;

    /** Returns the place in an array of all functions. */
    @SuppressWarnings("EnumOrdinal") // arrays of one process, in the order of this list
    int index() {
        return ordinal();
    }

    String symbol() {
        return "TF_" + name();
    }
}
