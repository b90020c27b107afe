package dev.nereid.spi;

/**
 * The kinds of failure a client can see. Immutable. Open: later versions may add constants.
 *
 * <p>Each protocol maps them to its own status in one place; a backend only chooses the kind.
 *
 * @since 1.0
 */
public enum ErrorCode {
    /** The kind of failure is unknown. Choose it only when nothing below fits. A client should not retry. */
    UNKNOWN,

    /**
     * The server or the backend is at fault. Causes are a bug, a framework failure, or an exhausted resource of its
     * own. Choose {@link #INVALID_ARGUMENT} when another request would have succeeded. A client may retry once.
     */
    INTERNAL,

    /** A model, a version or a file that the request names does not exist. Retrying does not help. */
    NOT_FOUND,

    /** The request itself is wrong, and would be wrong at any time. Retrying does not help. */
    INVALID_ARGUMENT,

    /**
     * The request is fine but cannot be served now. Causes are loading, stopping, overload, a timeout in a queue, or a
     * device or library that is not there. A client may retry after a pause.
     */
    UNAVAILABLE,

    /** The request requires a feature that this server, backend or model does not support. Retrying does not help. */
    UNSUPPORTED,

    /** The object that the request would create exists already. Retrying does not help. */
    ALREADY_EXISTS,

    /** The client, or a deadline that it set, cancelled the request before its response. */
    CANCELLED
}
