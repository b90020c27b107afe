package dev.nereid.scheduler.queue;

import org.jspecify.annotations.Nullable;

/**
 * Holds the waiting requests of one priority level: live ones first, then delayed ones. Confined to the lock of the
 * queue.
 *
 * <p>An intrusive list: the entries hold the links, so that an entry is removed in constant time.
 */
final class PriorityLevel {
    private final long number;
    private final QueuePolicy policy;
    private @Nullable QueueEntry first;
    private @Nullable QueueEntry lastLive;
    private @Nullable QueueEntry last;
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
    QueueEntry first() {
        return first;
    }

    /** Adds a request behind the live ones. */
    void add(QueueEntry entry) {
        entry.level = this;
        link(entry, lastLive);
        lastLive = entry;
    }

    /** Moves a live request behind all others. */
    void delay(QueueEntry entry) {
        unlink(entry);
        link(entry, last);
    }

    void remove(QueueEntry entry) {
        unlink(entry);
        entry.level = null;
    }

    private void link(QueueEntry entry, @Nullable QueueEntry before) {
        QueueEntry after = before == null ? first : before.next;
        entry.previous = before;
        entry.next = after;
        if (before == null) {
            first = entry;
        } else {
            before.next = entry;
        }
        if (after == null) {
            last = entry;
        } else {
            after.previous = entry;
        }
        size++;
    }

    private void unlink(QueueEntry entry) {
        QueueEntry before = entry.previous;
        QueueEntry after = entry.next;
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
        if (lastLive == entry) {
            lastLive = before;
        }
        entry.previous = null;
        entry.next = null;
        size--;
    }
}
