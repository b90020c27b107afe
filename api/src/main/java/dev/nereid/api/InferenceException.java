package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.ErrorCode;

/**
 * A failure as a client sees it: a kind and a message. Immutable.
 *
 * <p>It carries no stack trace: it is an answer, and frequent under overload.
 */
public final class InferenceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What kind of failure this is. */
    private final ErrorCode code;

    /**
     * Creates a failure.
     *
     * @param code the kind of failure
     * @param message what was wrong, where, what was expected, and what to do; safe to show to clients
     */
    public InferenceException(ErrorCode code, String message) {
        super(requireNonNull(message, "message"), null, false, false);
        this.code = requireNonNull(code, "code");
    }

    /**
     * Returns the kind of failure.
     *
     * @return the kind
     */
    public ErrorCode code() {
        return code;
    }

    /**
     * Returns the message, never {@code null}.
     *
     * @return the text for the client
     */
    public String publicMessage() {
        return String.valueOf(getMessage());
    }
}
