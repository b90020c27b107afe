package dev.nereid.backend.onnx;

/** ONNX Runtime's own error codes, in the order of the header's {@code OrtErrorCode}. Immutable. */
enum OrtErrorCode {
    OK,
    FAIL,
    INVALID_ARGUMENT,
    NO_SUCHFILE,
    NO_MODEL,
    ENGINE_ERROR,
    RUNTIME_EXCEPTION,
    INVALID_PROTOBUF,
    MODEL_LOADED,
    NOT_IMPLEMENTED,
    INVALID_GRAPH,
    EP_FAIL,
    MODEL_LOAD_CANCELED,
    MODEL_REQUIRES_COMPILATION,
    NOT_FOUND,
    DEVICE_RESET;

    /** Returns the code with ONNX Runtime's number {@code number}; {@link #FAIL} for one that is newer than this list. */
    static OrtErrorCode of(int number) {
        OrtErrorCode[] codes = values();
        return number >= 0 && number < codes.length ? codes[number] : FAIL;
    }
}
