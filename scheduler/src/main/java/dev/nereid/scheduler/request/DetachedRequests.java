package dev.nereid.scheduler.request;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The requests of a model that neither wait nor run on an instance. Kept so that they can be given up at the end of the
 * server. Lock-free; safe for use by any thread.
 *
 * <p>Nobody is forgotten: the end sets {@code abandoned} and then looks who is here, who comes is added and then looks
 * at {@code abandoned}, so at least one of the two sees the other.
 */
public final class DetachedRequests {
    private final Set<ScheduledRequest> requests = ConcurrentHashMap.newKeySet();
    private volatile boolean abandoned;

    /** Keeps a request in mind until {@link #remove}; gives it up if all are. To be called by a user of the request. */
    void add(ScheduledRequest request) {
        requests.add(request);
        if (abandoned) {
            request.abandon();
        }
    }

    /** Forgets a request that has ended. */
    void remove(ScheduledRequest request) {
        requests.remove(request);
    }

    /** Says whether requests are given up from now on, instead of being executed. */
    public boolean areAbandoned() {
        return abandoned;
    }

    /** Has requests given up that come from now on. */
    public void abandon() {
        abandoned = true;
    }

    /** Gives up those who are here. */
    public void abandonAll() {
        requests.forEach(ScheduledRequest::abandon);
    }

    /** Returns how many are here. */
    int count() {
        return requests.size();
    }
}
