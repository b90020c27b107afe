package dev.nereid.backend.onnx.ort;

/** ONNX Runtime's own error codes, in the order of the header's {@code OrtErrorCode}. Immutable. */
public enum OrtErrorCode {
    OK(0),
    FAIL(1),
    INVALID_ARGUMENT(2),
    NO_SUCHFILE(3),
    NO_MODEL(4),
    ENGINE_ERROR(5),
    RUNTIME_EXCEPTION(6),
    INVALID_PROTOBUF(7),
    MODEL_LOADED(8),
    NOT_IMPLEMENTED(9),
    INVALID_GRAPH(10),
    EP_FAIL(11),
    MODEL_LOAD_CANCELED(12),
    MODEL_REQUIRES_COMPILATION(13),
    NOT_FOUND(14),
    DEVICE_RESET(15);

    private final int number;

    OrtErrorCode(int number) {
        this.number = number;
    }

    /** Returns the code with ONNX Runtime's number {@code number}; {@link #FAIL} for one newer than this list. */
    static OrtErrorCode of(int number) {
        OrtErrorCode[] codes = values();
        return number >= 0 && number < codes.length ? codes[number] : FAIL;
    }

    /** Returns ONNX Runtime's number for the code. */
    public int number() {
        return number;
    }
}
