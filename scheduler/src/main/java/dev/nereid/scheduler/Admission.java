package dev.nereid.scheduler;

/** What became of a request that was offered to a queue: it waits, it is refused, or it is to be executed at once. */
sealed interface Admission permits Admission.Outcome, Seat {
    /** The ends of an offer that need nothing more of the offering thread, but an answer to what was refused. */
    enum Outcome implements Admission {
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
