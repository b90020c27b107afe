package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The error code and client-safe message of a failed request. Immutable.
 *
 * <p>It carries no stack trace: it is an answer, and frequent under overload.
 */
public final class InferenceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What kind of failure this is. */
    private final ErrorCode code;

    /** How long to wait before asking again; {@code null} if that is not known. */
    private final @Nullable Duration retryAfter;

    /** Why a request with this error is refused. */
    private final RefusalCause refusalCause;

    /**
     * Creates a failure.
     *
     * @param code the kind of failure
     * @param message what was wrong, where, what was expected, and what to do; safe to show to clients
     */
    public InferenceException(ErrorCode code, String message) {
        this(code, message, null, RefusalCause.of(code));
    }

    private InferenceException(
            ErrorCode code, String message, @Nullable Duration retryAfter, RefusalCause refusalCause) {
        super(requireNonNull(message, "message"), null, false, false);
        this.code = requireNonNull(code, "code");
        this.retryAfter = retryAfter;
        this.refusalCause = requireNonNull(refusalCause, "refusalCause");
    }

    /**
     * Creates the refusal of a call for which there is no room at this moment.
     *
     * @param message which bound is reached
     * @param retryAfter how long the client should wait before it asks the same again
     * @return a failure of kind {@link ErrorCode#UNAVAILABLE} that says so
     */
    public static InferenceException overloaded(String message, Duration retryAfter) {
        return new InferenceException(
                ErrorCode.UNAVAILABLE, message, requireNonNull(retryAfter, "retryAfter"), RefusalCause.OVERLOADED);
    }

    /**
     * Creates the error of a mistake of a client that the reference server calls an error of its own.
     *
     * @param message what was wrong: the text of the reference server, then what was expected, where, and what was got
     * @return a failure of kind {@link ErrorCode#INTERNAL}, which {@link #isClientError()}
     */
    public static InferenceException clientError(String message) {
        return refusal(ErrorCode.INTERNAL, RefusalCause.MALFORMED, message);
    }

    /**
     * Creates the refusal of a request that is larger than the server accepts.
     *
     * @param message which limit is exceeded
     * @return a failure of kind {@link ErrorCode#INVALID_ARGUMENT}
     */
    public static InferenceException tooLarge(String message) {
        return refusal(ErrorCode.INVALID_ARGUMENT, RefusalCause.TOO_LARGE, message);
    }

    /**
     * Creates the refusal of a request.
     *
     * @param code the kind of failure
     * @param cause why the request is refused
     * @param message what was wrong; safe to show to clients
     * @return the failure
     */
    public static InferenceException refusal(ErrorCode code, RefusalCause cause, String message) {
        return new InferenceException(code, message, null, cause);
    }

    /**
     * Returns why a request with this error is refused, if it is refused before it reaches a queue.
     *
     * @return the cause that is counted
     */
    public RefusalCause refusalCause() {
        return refusalCause;
    }

    /**
     * Returns whether this is the mistake of a client although its kind is {@link ErrorCode#INTERNAL}.
     *
     * @return whether it is one of {@link #clientError}
     */
    public boolean isClientError() {
        return code == ErrorCode.INTERNAL && refusalCause != RefusalCause.INTERNAL;
    }

    /** Returns this failure, as one of kind {@link ErrorCode#INVALID_ARGUMENT} if it is a mistake of a client. */
    InferenceException asBadRequest() {
        return isClientError()
                ? new InferenceException(ErrorCode.INVALID_ARGUMENT, publicMessage(), retryAfter, refusalCause)
                : this;
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
