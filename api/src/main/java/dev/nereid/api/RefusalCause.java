package dev.nereid.api;

import dev.nereid.spi.ErrorCode;

/** Cause for which a request is refused before it is queued. */
public enum RefusalCause {
    /**
     * The request violates the protocol. Examples are broken JSON, a value of the wrong type, and bytes that are no
     * message.
     */
    MALFORMED("malformed"),
    /** The request does not fit the model, or an argument of it is wrong. */
    INVALID("invalid"),
    /** The request, or a part of it, is larger than the server accepts. */
    TOO_LARGE("too_large"),
    /** The model or version is unknown. */
    UNKNOWN_MODEL("unknown_model"),
    /** The path, or its method, is unknown. */
    UNKNOWN_PATH("unknown_path"),
    /** The model is not ready, or the server stops. */
    NOT_READY("not_ready"),
    /** The server or the model does not support the request. */
    UNSUPPORTED("unsupported"),
    /** There is no capacity for the request now. */
    OVERLOADED("overloaded"),
    /** The request lacks the secret of a restricted part of the API. */
    RESTRICTED("restricted"),
    /** The server failed to handle the request. */
    INTERNAL("internal");

    private final String label;

    RefusalCause(String label) {
        this.label = label;
    }

    /**
     * Returns the name of the cause in metrics.
     *
     * @return the name, in lower case
     */
    public String label() {
        return label;
    }

    /** Returns the default cause of an error of a kind. */
    static RefusalCause of(ErrorCode code) {
        return switch (code) {
            case INVALID_ARGUMENT, ALREADY_EXISTS, UNKNOWN, CANCELLED -> INVALID;
            case NOT_FOUND -> UNKNOWN_MODEL;
            case UNAVAILABLE -> NOT_READY;
            case UNSUPPORTED -> UNSUPPORTED;
            case INTERNAL -> INTERNAL;
        };
    }
}
