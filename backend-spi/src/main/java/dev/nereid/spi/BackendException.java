package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

/**
 * A failure of a backend: an error code and a message for clients. Unchecked; immutable.
 *
 * <p>The message carries the framework's own error text where there is one; it never holds stack traces, pointers, or
 * paths outside the model repository. What a model's own program raises is excepted: its text may have the frames and paths of
 * that program. Anything else that a backend throws is reported as {@link ErrorCode#INTERNAL}
 * and logged with its stack trace.
 *
 * @since 1.0
 */
public final class BackendException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The kind of failure. */
    private final ErrorCode code;

    /**
     * Creates a failure.
     *
     * @param code the kind of failure
     * @param message the text: problem, place, expectation, remedy
     */
    public BackendException(ErrorCode code, String message) {
        super(requireNonNull(message, "message"));
        this.code = requireNonNull(code, "code");
    }

    /**
     * Creates a failure with the exception that led to it, for the server's log.
     *
     * @param code the kind of failure
     * @param message the text: problem, place, expectation, remedy
     * @param cause the cause; its message is not shown to clients
     */
    public BackendException(ErrorCode code, String message, Throwable cause) {
        super(requireNonNull(message, "message"), cause);
        this.code = requireNonNull(code, "code");
    }

    /**
     * Returns the kind of failure.
     *
     * @return the kind, never {@code null}
     */
    public ErrorCode code() {
        return code;
    }
}
