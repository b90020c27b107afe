package dev.nereid.scheduler;

import org.jspecify.annotations.Nullable;

/**
 * The requests of one level that wait: first the live ones in the order of their arrival, then the delayed ones in the
 * order in which their time was over. Confined to the lock of the queue.
 *
 * <p>The links lie in the requests themselves, so that any of them leaves in one step.
 */
final class PriorityLevel {
    private final long number;
    private final QueuePolicy policy;
    private @Nullable ScheduledRequest first;
    private @Nullable ScheduledRequest lastLive;
    private @Nullable ScheduledRequest last;
    private int size;

    PriorityLevel(long number, QueuePolicy policy) {
        this.number = number;
        this.policy = policy;
    }

    long number() {
        return number;
    }

    QueuePolicy policy() {
        return policy;
    }

    /** Returns the number of requests, delayed ones included. */
    int size() {
        return size;
    }

    /** Returns the request that goes first; {@code null} if none waits. */
    @Nullable
    ScheduledRequest first() {
        return first;
    }

    /** Adds a request behind the live ones. */
    void add(ScheduledRequest request) {
        request.level = this;
        link(request, lastLive);
        lastLive = request;
    }

    /** Moves a live request behind all others. */
    void delay(ScheduledRequest request) {
        unlink(request);
        link(request, last);
    }

    /** Removes a request that is here. */
    void remove(ScheduledRequest request) {
        unlink(request);
        request.level = null;
    }

    private void link(ScheduledRequest request, @Nullable ScheduledRequest before) {
        ScheduledRequest after = before == null ? first : before.next;
        request.previous = before;
        request.next = after;
        if (before == null) {
            first = request;
        } else {
            before.next = request;
        }
        if (after == null) {
            last = request;
        } else {
            after.previous = request;
        }
        size++;
    }

    private void unlink(ScheduledRequest request) {
        ScheduledRequest before = request.previous;
        ScheduledRequest after = request.next;
        if (before == null) {
            first = after;
        } else {
            before.next = after;
        }
        if (after == null) {
            last = before;
        } else {
            after.previous = before;
        }
        if (lastLive == request) {
            lastLive = before;
        }
        request.previous = null;
        request.next = null;
        size--;
    }
}
