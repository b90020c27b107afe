package dev.nereid.backend.onnx.ort;

/**
 * A failure reported by ONNX Runtime, with its message. Immutable.
 *
 * <p>Without a stack trace: it is created for every failed request, and the relevant place is in native code.
 */
public final class OrtException extends Exception {
    private static final long serialVersionUID = 1L;

    private final OrtErrorCode code;

    OrtException(OrtErrorCode code, String message) {
        super(message, null, false, false);
        this.code = code;
    }

    /** Returns ONNX Runtime's code for the failure. */
    public OrtErrorCode code() {
        return code;
    }
}
