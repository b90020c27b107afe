package dev.nereid.scheduler.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.scheduler.admission.RequestAdmission;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import java.time.Duration;

/** Creates the errors that schedulers report. */
public final class SchedulerErrors {
    /** The retry time after a refusal because of load. The requests in flight have most likely ended by then. */
    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    private SchedulerErrors() {}

    /** The client, or its deadline, cancelled the request. */
    public static InferenceException cancelled() {
        return new InferenceException(ErrorCode.CANCELLED, "request was cancelled");
    }

    /** The model accepts no more requests. */
    public static InferenceException stopped(CheckedRequest request) {
        return unavailable(
                request, "Server is stopping, scheduler for model has stopped accepting new inference requests");
    }

    /** The exit timeout of the server expired during the execution of the request. */
    static InferenceException abandoned(CheckedRequest request) {
        return unavailable(request, "Server is stopping, and could not wait for the end of the execution");
    }

    /** The priority level of the request has reached its maximum queue size. */
    public static InferenceException full(CheckedRequest request) {
        return overloaded(request, "Exceeds maximum queue size");
    }

    /** The limit of requests in flight is reached. */
    static InferenceException tooManyRequests(CheckedRequest request) {
        return overloaded(request, "Exceeds maximum number of requests in flight");
    }

    /** With the inputs of the request, the limit of bytes in flight would be exceeded. */
    static InferenceException tooManyBytes(CheckedRequest request) {
        return overloaded(request, "Exceeds maximum number of bytes in flight");
    }

    /** All instances of the model wait in the chain that leads to the request. */
    public static InferenceException waitsForItself(CheckedRequest request) {
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                waits(request, "would wait for itself: ")
                        + " (expected: an instance that does not wait in this chain)");
    }

    /** All instances of the model wait, in several chains that wait for each other. */
    public static InferenceException waitsForOthers(CheckedRequest request) {
        return InferenceException.overloaded(
                waits(request, "would wait for requests that wait for it: ")
                        + " (expected: more instances, or fewer requests at once; retry later)",
                RETRY_AFTER);
    }

    private static String waits(CheckedRequest request, String problem) {
        return "request to model '" + request.model() + "' " + problem
                + request.options().callers().path(request.model());
    }

    /** The timeout of the waiting request expired. */
    public static InferenceException timedOut() {
        return new InferenceException(ErrorCode.UNAVAILABLE, "Request timeout expired");
    }

    /** The server failed at the request. */
    public static InferenceException internal(Throwable cause) {
        return new InferenceException(ErrorCode.INTERNAL, "internal error: " + cause);
    }

    private static InferenceException unavailable(CheckedRequest request, String problem) {
        return new InferenceException(ErrorCode.UNAVAILABLE, withId(request, problem));
    }

    private static InferenceException overloaded(CheckedRequest request, String problem) {
        return InferenceException.overloaded(withId(request, problem), RETRY_AFTER);
    }

    private static String withId(CheckedRequest request, String problem) {
        return Quoted.requestPrefix(request.id()) + problem;
    }

    /** The last instance failed. */
    public static InferenceException noInstance(CheckedRequest request) {
        return new InferenceException(
                ErrorCode.UNAVAILABLE,
                "no instance of model '" + request.model() + "' version " + request.version()
                        + " is left: the last one failed beyond repair; load the model again");
    }

    /** No instance takes the request, and the model is about to be unloaded. */
    public static InferenceException stranded(CheckedRequest request) {
        return unavailable(
                request,
                "model '" + request.model() + "' version " + request.version()
                        + " is being unloaded while none of its instances is available");
    }

    /** No thread could be started for the instance that was to execute the request. */
    public static InferenceException noThread(CheckedRequest request, Throwable cause) {
        return new InferenceException(
                ErrorCode.UNAVAILABLE,
                "no thread could be started for an instance of model '" + request.model() + "' version "
                        + request.version() + ": " + cause.getMessage()
                        + " (expected: memory and process limits for one thread more; retry later)");
    }

    /** Converts a failure of a backend for the client: the same code, the same text. */
    public static InferenceException of(BackendException error) {
        if (error.getCause() instanceof InferenceException clientError && clientError.isClientError()) {
            return clientError;
        }
        return new InferenceException(error.code(), String.valueOf(error.getMessage()));
    }

    /** Converts a failure of the server for a backend: the same code, the same text. */
    public static BackendException of(InferenceException error) {
        return error.isClientError()
                ? new BackendException(error.code(), error.publicMessage(), error)
                : new BackendException(error.code(), error.publicMessage());
    }

    /** A backend threw a throwable that the SPI does not allow. */
    public static BackendException unexpected(ModelSettings model, Throwable thrown) {
        String text = thrown.getMessage() == null ? "" : ": " + thrown.getMessage();
        return new BackendException(
                ErrorCode.INTERNAL,
                "backend of model '" + model.name() + "' failed unexpectedly: "
                        + thrown.getClass().getSimpleName() + text,
                thrown);
    }

    /** The server failed at the updates of states of a batch. */
    public static BackendException statesNotStored(ModelSettings model) {
        return new BackendException(ErrorCode.INTERNAL, "states of model '" + model.name() + "' are not stored");
    }

    public static BackendException duplicateOutput(ModelSettings model, String output) {
        return output(model, output, "given twice (expected: once)");
    }

    /** An output does not match the model configuration. */
    public static BackendException output(ModelSettings model, String output, String problem) {
        return new BackendException(
                ErrorCode.INTERNAL, "output '" + output + "' of model '" + model.name() + "': " + problem);
    }

    /** The update of a state does not match the model configuration. */
    public static BackendException state(ModelSettings model, String state, String problem) {
        return new BackendException(
                ErrorCode.INTERNAL, "state '" + state + "' of model '" + model.name() + "': " + problem);
    }

    /** Returns the reason why a request is refused: the load, unless the model is stopped. */
    public static InferenceException refusal(
            CheckedRequest request, RequestAdmission.Verdict verdict, boolean stopped) {
        if (stopped) {
            return stopped(request);
        }
        return verdict == RequestAdmission.Verdict.TOO_MANY_BYTES ? tooManyBytes(request) : tooManyRequests(request);
    }
}
