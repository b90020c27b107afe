package dev.nereid.scheduler.batch;

import dev.nereid.scheduler.request.ScheduledRequest;

/** Iterates over a queue in the order of execution. Confined to the lock of the queue. */
public interface QueueView {
    /** Goes back to the front of the queue: the next request is the first. */
    void rewind();

    /** Goes on to the next request; returns whether there is one. If not, only {@link #rewind} may be called. */
    boolean next();

    ScheduledRequest current();

    /** Returns the number of items in the current request. */
    int batchSize();

    /** Returns when the current request was enqueued. */
    long enqueuedNanos();

    /** Returns whether the current request may share a batch with the first one. */
    boolean joins();
}
