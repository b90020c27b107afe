package dev.nereid.backend.tensorflow.capi;

/**
 * A failure reported by TensorFlow, with its message. Immutable.
 *
 * <p>Without a stack trace: it is created for every failed request, and the relevant place is in native code.
 */
public final class TfException extends Exception {
    private static final long serialVersionUID = 1L;

    private final TfErrorCode code;

    TfException(TfErrorCode code, String message) {
        super(message, null, false, false);
        this.code = code;
    }

    /** Returns TensorFlow's code for the failure. */
    public TfErrorCode code() {
        return code;
    }
}
