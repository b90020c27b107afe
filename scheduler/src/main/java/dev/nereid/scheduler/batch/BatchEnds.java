package dev.nereid.scheduler.batch;

import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.statistics.ExecutionTally;
import java.util.BitSet;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Ends the requests of an execution, step by step. Static functions only. */
final class BatchEnds {
    private BatchEnds() {}

    /** Returns the number of items in the batch. Items of null requests count: the backend computes them too. */
    static int items(BackendRequest[] executed) {
        int items = 0;
        for (BackendRequest request : executed) {
            items += request.scheduled().checked().batchSize();
        }
        return items;
    }

    /** Decides how the requests end, and counts the requests that end. */
    static void settle(
            BackendRequest[] executed,
            ResponseEvent.@Nullable Failure failure,
            ExecutionTally tally,
            @Nullable Rescheduler rescheduler) {
        int firstItem = 0;
        for (int i = 0; i < executed.length; i++) {
            executed[i].settle(failure, i, firstItem, tally, rescheduler);
            firstItem += executed[i].scheduled().checked().batchSize();
        }
    }

    /** Delivers the responses with pending outputs, before {@link #finish}. */
    static void deliverPending(BackendRequest[] executed) {
        for (BackendRequest request : executed) {
            request.deliverPending();
        }
    }

    /** Delivers the terminal responses that are not delivered yet, and ends the use of the requests. */
    static void finish(BackendRequest[] executed) {
        for (BackendRequest request : executed) {
            request.finish();
        }
    }

    /**
     * Cuts the state updates of the requests. A request without a valid update fails. Called before the requests are
     * settled.
     *
     * @param ofBatch the state updates of all requests together; {@code null} for none
     */
    static void cutStates(BackendRequest[] executed, @Nullable StateUpdates ofBatch) {
        if (ofBatch != null) {
            ofBatch.written(itemsOfNone(executed));
        }
        int firstItem = 0;
        for (BackendRequest request : executed) {
            request.cutStates(ofBatch, firstItem);
            firstItem += request.scheduled().checked().batchSize();
        }
    }

    private static BitSet itemsOfNone(BackendRequest[] executed) {
        BitSet items = new BitSet();
        int firstItem = 0;
        for (BackendRequest request : executed) {
            int next = firstItem + request.scheduled().checked().batchSize();
            if (request.isNullRequest()) {
                items.set(firstItem, next);
            }
            firstItem = next;
        }
        return items;
    }

    /**
     * Stores the state updates, unless execution or request failed.
     *
     * @param ofBatch the state updates of all requests together; {@code null} for none
     */
    static void storeStates(BackendRequest[] executed, boolean succeeded, @Nullable StateUpdates ofBatch) {
        for (BackendRequest request : executed) {
            request.storeStates(succeeded);
        }
        if (ofBatch != null) {
            ofBatch.end();
        }
    }

    /**
     * Returns the requests to their source, all at once. Called last, when everything of the execution is settled.
     *
     * @param rescheduler takes the requests back; {@code null} if none is rescheduled
     */
    static void reschedule(
            BackendRequest[] executed,
            @Nullable Rescheduler rescheduler,
            List<ScheduledRequest> rescheduled,
            long nowNanos) {
        int ofClients = 0;
        Runnable releases = null;
        try {
            for (BackendRequest request : executed) {
                ofClients += request.isNullRequest() ? 0 : 1;
                boolean waits = request.reschedule(nowNanos);
                if (waits) {
                    rescheduled.add(request.scheduled());
                }
                releases = request.released(waits, releases);
            }
        } finally {
            release(releases, rescheduler, ofClients, rescheduled);
        }
    }

    private static void release(
            @Nullable Runnable releases,
            @Nullable Rescheduler rescheduler,
            int ofClients,
            List<ScheduledRequest> rescheduled) {
        try {
            if (releases != null) {
                releases.run();
            }
        } finally {
            if (rescheduler != null) {
                rescheduler.reschedule(ofClients, rescheduled);
            }
        }
    }
}
