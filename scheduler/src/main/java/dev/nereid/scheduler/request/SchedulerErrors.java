package dev.nereid.scheduler.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.scheduler.admission.ModelLoad;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import java.time.Duration;

/** Creates the errors that schedulers report. */
public final class SchedulerErrors {
    /** When to ask again after a refusal for too much load: what is in flight now is most likely done by then. */
    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    private SchedulerErrors() {}

    /** The client, or its deadline, withdrew the call. */
    public static InferenceException cancelled() {
        return new InferenceException(ErrorCode.CANCELLED, "request was cancelled");
    }

    /** The model takes no more calls. */
    public static InferenceException stopped(CheckedRequest call) {
        return unavailable(
                call, "Server is stopping, scheduler for model has stopped accepting new inference requests");
    }

    /** The server's time to end is over, and the call is executed still. */
    static InferenceException abandoned(CheckedRequest call) {
        return unavailable(call, "Server is stopping, and could not wait for the end of the execution");
    }

    /** As many requests wait as may wait on the level of the call. */
    public static InferenceException full(CheckedRequest call) {
        return overloaded(call, "Exceeds maximum queue size");
    }

    /** As many requests are in flight as may be. */
    static InferenceException tooManyRequests(CheckedRequest call) {
        return overloaded(call, "Exceeds maximum number of requests in flight");
    }

    /** With the inputs of the call, more bytes would be in flight than may be. */
    static InferenceException tooManyBytes(CheckedRequest call) {
        return overloaded(call, "Exceeds maximum number of bytes in flight");
    }

    /** The call waited for longer than it may. */
    public static InferenceException timedOut() {
        return new InferenceException(ErrorCode.UNAVAILABLE, "Request timeout expired");
    }

    /** The server failed at the call. */
    public static InferenceException internal(Throwable cause) {
        return new InferenceException(ErrorCode.INTERNAL, "internal error: " + cause);
    }

    private static InferenceException unavailable(CheckedRequest call, String problem) {
        return new InferenceException(ErrorCode.UNAVAILABLE, withId(call, problem));
    }

    private static InferenceException overloaded(CheckedRequest call, String problem) {
        return InferenceException.overloaded(withId(call, problem), RETRY_AFTER);
    }

    private static String withId(CheckedRequest call, String problem) {
        return Quoted.requestPrefix(call.id()) + problem;
    }

    /** The last instance died. */
    public static InferenceException noInstance(CheckedRequest call) {
        return new InferenceException(
                ErrorCode.UNAVAILABLE,
                "no instance of model '" + call.model() + "' version " + call.version()
                        + " is left: the last one failed beyond repair; load the model again");
    }

    /** A failure of a backend as its client sees it: the same kind, the same text. */
    public static InferenceException of(BackendException error) {
        if (error.getCause() instanceof InferenceException mistake && mistake.isClientError()) {
            return mistake;
        }
        return new InferenceException(error.code(), String.valueOf(error.getMessage()));
    }

    /** A failure of the server as a backend sees it: the same kind, the same text. */
    public static BackendException of(InferenceException error) {
        return error.isClientError()
                ? new BackendException(error.code(), error.publicMessage(), error)
                : new BackendException(error.code(), error.publicMessage());
    }

    /** Something that a backend must not throw. */
    public static BackendException unexpected(ModelSettings model, Throwable thrown) {
        String text = thrown.getMessage() == null ? "" : ": " + thrown.getMessage();
        return new BackendException(
                ErrorCode.INTERNAL,
                "backend of model '" + model.name() + "' failed unexpectedly: "
                        + thrown.getClass().getSimpleName() + text,
                thrown);
    }

    /** An output that a backend gives again. */
    public static BackendException duplicateOutput(ModelSettings model, String output) {
        return output(model, output, "given twice (expected: once)");
    }

    /** An output that does not fit. */
    public static BackendException output(ModelSettings model, String output, String problem) {
        return new BackendException(
                ErrorCode.INTERNAL, "output '" + output + "' of model '" + model.name() + "': " + problem);
    }

    /** Says why a call is not taken: that there is too much, unless it would not be taken in any case. */
    public static InferenceException refusal(CheckedRequest call, ModelLoad.Verdict verdict, boolean stopped) {
        if (stopped) {
            return stopped(call);
        }
        return verdict == ModelLoad.Verdict.TOO_MANY_BYTES ? tooManyBytes(call) : tooManyRequests(call);
    }
}
