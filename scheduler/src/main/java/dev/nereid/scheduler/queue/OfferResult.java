package dev.nereid.scheduler.queue;

/** The result of an offer to a queue. */
public sealed interface OfferResult permits OfferResult.Outcome, InstanceHandle {
    /** Results of an offer without direct execution. */
    enum Outcome implements OfferResult {
        /** The request waits, and will be answered, or was answered before. */
        ACCEPTED,
        /** No more requests may wait on its level. */
        FULL,
        /** The queue takes no more. */
        STOPPED,
        /** No instance is left that could execute it. */
        NO_INSTANCE
    }
}
