package dev.nereid.scheduler.request;

import java.util.List;

/**
 * Receives the requests of one instance after their executions, and queues rescheduled ones. Safe for use by any
 * thread.
 *
 * <p>The source of batches provides it for a model with requests that may be rescheduled. The source counts the
 * requests that it passed out: while any of them may be rescheduled, its instances stay.
 */
public interface Rescheduler {
    /**
     * Creates the position of a request that is to be rescheduled, with all data of the request for the queue. The
     * request is not in the queue yet.
     */
    Position newPosition(ScheduledRequest request);

    /**
     * Counts ended executions, and queues the rescheduled requests, which were
     * {@linkplain ScheduledRequest#reschedule put back} to waiting. Completes requests that cannot be queued. Takes a
     * lock.
     *
     * @param ended the number of requests with an ended execution, {@code rescheduled} included
     */
    void reschedule(int ended, List<ScheduledRequest> rescheduled);

    /** Removes one request from the queue in which it waits. Safe for use by any thread. */
    interface Position {
        /** Removes the request, if it waits there. */
        void leave();
    }
}
