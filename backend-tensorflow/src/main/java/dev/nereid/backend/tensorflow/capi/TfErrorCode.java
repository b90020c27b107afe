package dev.nereid.backend.tensorflow.capi;

/** TensorFlow's own error codes, in the order of the header's {@code TF_Code}. Immutable. */
public enum TfErrorCode {
    OK,
    CANCELLED,
    UNKNOWN,
    INVALID_ARGUMENT,
    DEADLINE_EXCEEDED,
    NOT_FOUND,
    ALREADY_EXISTS,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION,
    ABORTED,
    OUT_OF_RANGE,
    UNIMPLEMENTED,
    INTERNAL,
    UNAVAILABLE,
    DATA_LOSS,
    UNAUTHENTICATED;

    /** Returns the code with TensorFlow's number {@code number}. It is {@link #UNKNOWN} for one above this list. */
    static TfErrorCode of(int number) {
        TfErrorCode[] codes = values();
        return number >= 0 && number < codes.length ? codes[number] : UNKNOWN;
    }
}
