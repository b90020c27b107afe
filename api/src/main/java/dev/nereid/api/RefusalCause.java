package dev.nereid.api;

import dev.nereid.spi.ErrorCode;

/** Cause for which a request is refused before it is queued. */
public enum RefusalCause {
    /** The request is not what the protocol says: broken JSON, a value of the wrong type, bytes that are no message. */
    MALFORMED("malformed"),
    /** The request does not fit the model, or an argument of it is wrong. */
    INVALID("invalid"),
    /** The request, or a part of it, is larger than the server accepts. */
    TOO_LARGE("too_large"),
    /** There is no such model or version. */
    UNKNOWN_MODEL("unknown_model"),
    /** There is nothing at this path, or not for this method. */
    UNKNOWN_PATH("unknown_path"),
    /** The model is not ready, or the server stops. */
    NOT_READY("not_ready"),
    /** The server does not do such a thing, or the model does not. */
    UNSUPPORTED("unsupported"),
    /** There is no room for the request now. */
    OVERLOADED("overloaded"),
    /** The request lacks the secret of a restricted part of the API. */
    RESTRICTED("restricted"),
    /** The server failed at the request. */
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

    /** Returns the cause that an error of a kind has unless its maker says more. */
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
