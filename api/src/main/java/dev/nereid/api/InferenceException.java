package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The error code and client-safe message of a failed request. Immutable.
 *
 * <p>It carries no stack trace: it is a response, and frequent under overload.
 */
public final class InferenceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The kind of failure. */
    private final ErrorCode code;

    /** How long clients wait before they retry; {@code null} if that is not known. */
    private final @Nullable Duration retryAfter;

    /** The cause for which a request with this error is refused. */
    private final RefusalCause refusalCause;

    /**
     * Creates a failure.
     *
     * @param code the kind of failure
     * @param message the text: problem, place, expectation, remedy; safe to show to clients
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
     * Creates the refusal of a request for which there is no capacity at this moment.
     *
     * @param message the limit that is reached
     * @param retryAfter how long the client should wait before it retries
     * @return a failure of kind {@link ErrorCode#UNAVAILABLE}
     */
    public static InferenceException overloaded(String message, Duration retryAfter) {
        return new InferenceException(
                ErrorCode.UNAVAILABLE, message, requireNonNull(retryAfter, "retryAfter"), RefusalCause.OVERLOADED);
    }

    /**
     * Creates the error of a client that the reference server reports as its own, {@link ErrorCode#INTERNAL}.
     *
     * @param message the text of the reference server, then expectation, place and received value
     * @return a failure of kind {@link ErrorCode#INTERNAL}, which {@link #isClientError()}
     */
    public static InferenceException clientError(String message) {
        return refusal(ErrorCode.INTERNAL, RefusalCause.MALFORMED, message);
    }

    /**
     * Creates the refusal of a request that is larger than the server accepts.
     *
     * @param message the limit that is exceeded
     * @return a failure of kind {@link ErrorCode#INVALID_ARGUMENT}
     */
    public static InferenceException tooLarge(String message) {
        return refusal(ErrorCode.INVALID_ARGUMENT, RefusalCause.TOO_LARGE, message);
    }

    /**
     * Creates the refusal of a request.
     *
     * @param code the kind of failure
     * @param cause the cause that is counted
     * @param message the problem; safe to show to clients
     * @return the failure
     */
    public static InferenceException refusal(ErrorCode code, RefusalCause cause, String message) {
        return new InferenceException(code, message, null, cause);
    }

    /**
     * Returns the cause of a refusal with this error. The refusal happens before the request is queued.
     *
     * @return the cause that is counted
     */
    public RefusalCause refusalCause() {
        return refusalCause;
    }

    /**
     * Returns whether this is an error of a client although its kind is {@link ErrorCode#INTERNAL}.
     *
     * @return whether it is one of {@link #clientError}
     */
    public boolean isClientError() {
        return code == ErrorCode.INTERNAL && refusalCause != RefusalCause.INTERNAL;
    }

    /** Returns this failure with the kind {@link ErrorCode#INVALID_ARGUMENT} if it is a client error. */
    InferenceException asBadRequest() {
        return isClientError()
                ? new InferenceException(ErrorCode.INVALID_ARGUMENT, publicMessage(), retryAfter, refusalCause)
                : this;
    }

    /**
     * Returns this failure with a text in front of its message.
     *
     * @param prefix the text, such as the place of the failure
     * @return a failure of the same kind and cause
     */
    public InferenceException withPrefix(String prefix) {
        return new InferenceException(code, prefix + publicMessage(), retryAfter, refusalCause);
    }

    /**
     * Returns the same failure with another text.
     *
     * @param message the text for clients
     * @return the failure, with the same code and times
     */
    public InferenceException withMessage(String message) {
        return new InferenceException(code, message, retryAfter, refusalCause);
    }

    /**
     * Returns the same failure with more at the end of its text.
     *
     * @param suffix what the text ends with
     * @return the failure, with the same code and times
     */
    public InferenceException withSuffix(String suffix) {
        return new InferenceException(code, publicMessage() + suffix, retryAfter, refusalCause);
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
     * Returns how long the client should wait before it retries.
     *
     * @return the pause; empty unless the request was refused under overload
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
