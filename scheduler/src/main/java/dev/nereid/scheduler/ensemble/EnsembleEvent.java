package dev.nereid.scheduler.ensemble;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;

/** An event of a request to an ensemble. Immutable. */
sealed interface EnsembleEvent {
    /** The request has begun. */
    record Begun() implements EnsembleEvent {}

    /** The models are acquired. */
    record Acquired(StepModels.Pinned models) implements EnsembleEvent {}

    /** A model cannot be used. */
    record NotAcquired(InferenceException error) implements EnsembleEvent {}

    /** A step sent a response, which belongs to the run. */
    record Responded(StepExecution step, InferResponse response) implements EnsembleEvent {}

    /** A decoupled step sent a failed response, and goes on. */
    record FailedResponse(StepExecution step, InferenceException error) implements EnsembleEvent {}

    /** A step has no more responses. */
    record Completed(StepExecution step) implements EnsembleEvent {}

    /** A step failed, or was refused. */
    record Failed(StepExecution step, InferenceException error) implements EnsembleEvent {}

    /** A step that waited for others of its kind may be submitted. */
    record Granted(StepExecution step) implements EnsembleEvent {}

    /** The request was cancelled. */
    record Cancelled() implements EnsembleEvent {}

    /** The deadline or timeout of the request has passed. */
    record Expired(InferenceException error) implements EnsembleEvent {}
}
