package dev.nereid.scheduler.request;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Holds requests of a model outside of queues and instances. Kept so that they can be abandoned at shutdown. Lock-free;
 * safe for use by any thread.
 *
 * <p>A request is here while its execution is deferred, while it has a sender, while it is looked up in the response
 * cache, or while an ensemble executes it.
 *
 * <p>No request is missed: shutdown sets {@code abandoned} and then reads the set; {@link #add} adds a request and then
 * reads {@code abandoned}. At least one of the two sees the other.
 */
public final class DetachedRequests {
    /** A request that the server can abandon. Safe for use by any thread. An interface, since requests depend on this class. */
    public interface Detached {
        /** Completes the request, unless it is completed. */
        void abandon();

        /** Ends the count of the request as in flight. Called once, after {@link #abandon}. */
        void lose();

        /** Returns the client's id of the request; empty for none. */
        String id();

        /** Returns the name of the instance that executes it; empty for none. */
        String instance();

        /** Returns whether it is executed and not completed. */
        boolean isExecuting();

        /** Returns whether its backend has a sender that is not ended. */
        boolean hasSender();

        /** Returns whether it has such a sender, and no client any more. */
        boolean isForsaken();

        /** Returns when its current or last execution began. Another thread may see it late. */
        long startedNanos();

        /** Returns whether the request is counted as using an instance in its current execution. */
        boolean uses(RequestDrain instance);
    }

    private final Set<Detached> requests = ConcurrentHashMap.newKeySet();
    private volatile boolean abandoned;

    /** Adds a request until {@link #remove}; abandons it if all are. The caller holds a reference to it. */
    void add(Detached request) {
        requests.add(request);
        if (abandoned) {
            request.abandon();
        }
    }

    void remove(Detached request) {
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

    public void abandonAll() {
        requests.forEach(Detached::abandon);
    }

    /** Returns the requests with a current execution that uses an instance. */
    public List<Detached> of(RequestDrain instance) {
        return requests.stream().filter(request -> request.uses(instance)).toList();
    }

    /** Returns the requests that are executed, and began before a time. */
    public List<Detached> startedBefore(long nanos) {
        return requests.stream()
                .filter(request -> request.isExecuting() && request.startedNanos() - nanos < 0)
                .toList();
    }

    /** Returns whether any of the requests is executed and not completed. */
    public boolean areExecuted() {
        return requests.stream().anyMatch(Detached::isExecuting);
    }

    /** Returns the number of requests with a backend that has a sender that is not ended. */
    public int openSenders() {
        return (int) requests.stream().filter(Detached::hasSender).count();
    }

    /** Returns the number of these requests without a client. */
    public int forsaken() {
        return (int) requests.stream().filter(Detached::isForsaken).count();
    }
}
