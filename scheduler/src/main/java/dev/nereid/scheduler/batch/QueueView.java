package dev.nereid.scheduler.batch;

import dev.nereid.scheduler.request.ScheduledRequest;

/** Iterates over a queue in the order of execution. Confined to the lock of the queue. */
public interface QueueView {
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
