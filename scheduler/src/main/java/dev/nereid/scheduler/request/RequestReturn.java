package dev.nereid.scheduler.request;

import java.util.List;

/**
 * Takes the requests of one instance back when their executions have ended. Safe for use by any thread.
 *
 * <p>The source of batches of a model whose requests may be executed again provides it, and counts the requests that
 * it handed out: while any of them may come back, its instances stay.
 */
public interface RequestReturn {
    /**
     * Creates the position of a request that is to wait again, with all that the queue needs to know of the request.
     * The request is not in the queue yet.
     */
    QueuePosition newPosition(ScheduledRequest request);

    /**
     * Takes requests back. Those to be executed again were {@linkplain ScheduledRequest#waitAgain put back} to waiting,
     * and are queued; this completes those that cannot be. Takes a lock.
     *
     * @param ended the number of requests whose execution has ended, those of {@code again} included
     * @param again the requests to be executed again
     */
    void giveBack(int ended, List<ScheduledRequest> again);
}
