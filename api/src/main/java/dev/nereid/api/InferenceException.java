package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A failure as a client sees it: a kind and a message. Immutable.
 *
 * <p>It carries no stack trace: it is an answer, and frequent under overload.
 */
public final class InferenceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What kind of failure this is. */
    private final ErrorCode code;

    /** How long to wait before asking again; {@code null} if that is not known. */
    private final @Nullable Duration retryAfter;

    /**
     * Creates a failure.
     *
     * @param code the kind of failure
     * @param message what was wrong, where, what was expected, and what to do; safe to show to clients
     */
    public InferenceException(ErrorCode code, String message) {
        this(code, message, null);
    }

    private InferenceException(ErrorCode code, String message, @Nullable Duration retryAfter) {
        super(requireNonNull(message, "message"), null, false, false);
        this.code = requireNonNull(code, "code");
        this.retryAfter = retryAfter;
    }

    /**
     * Creates the refusal of a call for which there is no room at this moment.
     *
     * @param message which bound is reached
     * @param retryAfter how long the client should wait before it asks the same again
     * @return a failure of kind {@link ErrorCode#UNAVAILABLE} that says so
     */
    public static InferenceException overloaded(String message, Duration retryAfter) {
        return new InferenceException(ErrorCode.UNAVAILABLE, message, requireNonNull(retryAfter, "retryAfter"));
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
     * Returns how long the client should wait before it asks the same again.
     *
     * @return the pause; empty unless the call was refused for too much load
     */
    public Optional<Duration> retryAfter() {
        return Optional.ofNullable(retryAfter);
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
