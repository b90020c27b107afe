package dev.nereid.scheduler.queue;

import dev.nereid.api.InferenceException;

/** The result of an offer to a queue. */
public sealed interface OfferResult permits OfferResult.Outcome, OfferResult.Refused, InstanceHandle {
    /** Results of an offer without direct execution. */
    enum Outcome implements OfferResult {
        /** The request waits, or is completed already. */
        ACCEPTED,
        /** The priority level of the request is full. */
        FULL,
        /** The queue is stopped. */
        STOPPED,
        /** No instance is available, and the model is about to be unloaded. */
        STRANDED,
        /** No instance is left to execute the request. */
        NO_INSTANCE
    }

    /** The request does not fit its sequence. */
    record Refused(InferenceException error) implements OfferResult {}
}
