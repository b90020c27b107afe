package dev.nereid.scheduler;

/**
 * A queue as its planner sees it, one request at a time in the order in which they are to go. Confined to the lock of
 * the queue.
 */
interface QueueView {
    /** Looks at the front of the queue again: the next request is the first. */
    void rewind();

    /**
     * Goes on to the next request.
     *
     * @return whether there is one; if not, nothing may be asked but to rewind
     */
    boolean next();

    /** Returns the request. */
    ScheduledRequest current();

    /** Returns the number of items in the request. */
    int batchSize();

    /** Returns when the request arrived. */
    long enqueuedNanos();

    /** Says whether the inputs of the request may be executed together with those of the first one. */
    boolean joins();
}
