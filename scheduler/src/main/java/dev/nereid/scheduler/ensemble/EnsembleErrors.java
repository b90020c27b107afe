package dev.nereid.scheduler.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.ErrorCode;
import java.time.Duration;

/** Creates and delivers the errors of requests to ensembles. Static functions only. */
final class EnsembleErrors {
    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    /** The failure of a request whose failure failed. */
    @SuppressWarnings("StaticAssignmentOfThrowable") // There may be no stack for another one.
    static final InferenceException BROKEN =
            new InferenceException(ErrorCode.INTERNAL, "internal error: its failure failed too");

    private EnsembleErrors() {}

    /** Completes a request to an ensemble with an error that names the ensemble. */
    static void fail(ScheduledRequest request, InferenceException error) {
        FailureReason reason = error.code() == ErrorCode.CANCELLED ? FailureReason.CANCELED : FailureReason.OTHER;
        request.complete(new ResponseEvent.Failure(of(request.checked(), error), reason));
    }

    private static InferenceException of(CheckedRequest request, InferenceException error) {
        return error.withPrefix("in ensemble '" + request.model() + "', ");
    }

    /** Names the model of a step at the end of its error, unless the error names it already. */
    static InferenceException ofStep(StepPlan step, InferenceException error) {
        String model = "'" + step.model() + "'";
        return error.publicMessage().contains(model) ? error : error.withSuffix(" (step " + model + ")");
    }

    /** Returns the error for missing outputs when no step runs any more. */
    static InferenceException deadlock(CheckedRequest request) {
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                Quoted.requestPrefix(request.id())
                        + "unexpected deadlock, at least one output is not set while no more ensemble steps can be made");
    }

    /** Returns the error for a second response of a model that was loaded as one with one response. */
    static InferenceException secondResponse(StepPlan step) {
        return new InferenceException(
                ErrorCode.INTERNAL,
                "model '" + step.model() + "' sent a second response (expected: one, as when the ensemble was loaded)");
    }

    /** Returns the error for a decoupled step that sends faster than later steps take. */
    static InferenceException tooManyBytes(StepPlan step, long max) {
        return InferenceException.overloaded(
                "responses of model '" + step.model() + "' that wait for later steps exceed " + max
                        + " bytes (expected: a model that pauses while its sender is not ready)",
                RETRY_AFTER);
    }

    static InferenceException internal(Throwable cause) {
        return cause instanceof InferenceException error ? error : SchedulerErrors.internal(cause);
    }
}
