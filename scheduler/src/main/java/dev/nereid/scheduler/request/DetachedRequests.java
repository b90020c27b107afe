package dev.nereid.scheduler.request;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The requests of a model that neither wait nor run on an instance. Kept so that they can be abandoned at shutdown.
 * Lock-free; safe for use by any thread.
 *
 * <p>No request is missed: shutdown sets {@code abandoned} and then reads the set; {@link #add} adds a request and then
 * reads {@code abandoned}. At least one of the two sees the other.
 */
public final class DetachedRequests {
    private final Set<ScheduledRequest> requests = ConcurrentHashMap.newKeySet();
    private volatile boolean abandoned;

    /**
     * Adds a request until {@link #remove}; abandons it if all are abandoned. The caller holds a reference to the
     * request.
     */
    void add(ScheduledRequest request) {
        requests.add(request);
        if (abandoned) {
            request.abandon();
        }
    }

    /** Removes a request. */
    void remove(ScheduledRequest request) {
        requests.remove(request);
    }

    /** Returns whether requests are abandoned from now on, instead of being executed. */
    public boolean areAbandoned() {
        return abandoned;
    }

    /** Abandons requests that are added from now on. */
    public void abandon() {
        abandoned = true;
    }

    /** Abandons all requests of the set. */
    public void abandonAll() {
        requests.forEach(ScheduledRequest::abandon);
    }

    /** Returns the number of requests. */
    int count() {
        return requests.size();
    }
}
