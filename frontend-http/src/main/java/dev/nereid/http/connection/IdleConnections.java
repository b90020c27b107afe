package dev.nereid.http.connection;

import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Comparator;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Selects idle connections of one event loop for eviction. Confined to its event loop, but for the methods that say
 * otherwise.
 *
 * <p>A search scans all connections and keeps several candidates, so that not every new connection needs a search. If
 * there is none, other event loops are preferred for a while.
 */
final class IdleConnections {
    /** The maximum number of candidates of one search. */
    static final int CANDIDATES = 64;

    /** The delay before another search if there were no candidates. */
    static final long SEARCH_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    /** How long the event loop may take to start an eviction before others are preferred. */
    static final long MAX_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Connections that never served a request are evicted first: their clients lose nothing. */
    private static final Comparator<Candidate> ORDER =
            Comparator.comparing(Candidate::hasResponded).thenComparing((a, b) -> Long.signum(a.since - b.since));

    /** A connection that can be evicted while it is idle. */
    interface Connection {
        boolean isOpen();

        boolean isEvictable();

        /** Returns whether it has ever served a request. */
        boolean hasResponded();

        long idleSince();

        void abort();
    }

    /**
     * A connection that was idle when it was found. Immutable.
     *
     * @param hasResponded whether it had served a request
     * @param since when it became idle; it was used if that has changed
     */
    private record Candidate(Connection connection, boolean hasResponded, long since) {
        Candidate(Connection connection) {
            this(connection, connection.hasResponded(), connection.idleSince());
        }

        boolean isUnchanged() {
            return connection.isOpen() && connection.isEvictable() && connection.idleSince() == since;
        }
    }

    private final Collection<? extends Connection> connections;
    private final LongSupplier clock;
    private final Deque<Candidate> candidates = new ArrayDeque<>();
    private volatile long oldestSince;
    private volatile long searchAgainAt;
    /** The number of requested evictions that have not started. */
    private final AtomicInteger pendingEvictions = new AtomicInteger();

    private volatile long evictionPendingSince;

    /** Creates a selection from a view of the event loop's connections, with a clock in nanoseconds from any origin. */
    IdleConnections(Collection<? extends Connection> connections, LongSupplier clock) {
        this.connections = connections;
        this.clock = clock;
        oldestSince = clock.getAsLong();
        searchAgainAt = oldestSince;
    }

    /** Returns whether there may be an idle connection. May be called on any thread. */
    boolean mayExist() {
        long now = clock.getAsLong();
        return now - searchAgainAt >= 0 && (!isEvictionPending() || now - evictionPendingSince <= MAX_WAIT_NANOS);
    }

    /** Records that an eviction was requested. Called by the accepting thread. */
    void requestEviction() {
        if (!isEvictionPending()) {
            evictionPendingSince = clock.getAsLong();
        }
        pendingEvictions.incrementAndGet();
    }

    /** Records that an eviction starts, or never will. May be called on any thread. */
    void evictionStarted() {
        evictionPendingSince = clock.getAsLong();
        pendingEvictions.decrementAndGet();
    }

    /** Returns whether a requested eviction has not started. May be called on any thread. */
    boolean isEvictionPending() {
        return pendingEvictions.get() > 0;
    }

    /** Returns about when the longest idle connection became idle. May be called on any thread. */
    long oldestSince() {
        return oldestSince;
    }

    /** Sets when the longest idle connection became idle. */
    void setOldestSince(long since) {
        oldestSince = since;
    }

    /** Closes the longest idle connection at once, if there is one. */
    void closeOldest() {
        closeOldest(0);
    }

    /**
     * Closes the longest idle connection at once, if there is one.
     *
     * @param minIdleNanos how long a connection that has served a request must have been idle; 0 for any time
     */
    void closeOldest(long minIdleNanos) {
        Candidate found = next();
        if (found == null) {
            search();
            found = next();
        }
        long now = clock.getAsLong();
        if (found == null) {
            oldestSince = now;
            searchAgainAt = now + SEARCH_NANOS;
        } else if (minIdleNanos > 0 && found.hasResponded && now - found.since < minIdleNanos) {
            oldestSince = found.since;
            candidates.addFirst(found);
        } else {
            oldestSince = found.since;
            found.connection.abort();
        }
    }

    private @Nullable Candidate next() {
        Candidate next = candidates.poll();
        while (next != null && !next.isUnchanged()) {
            next = candidates.poll();
        }
        return next;
    }

    private void search() {
        connections.stream()
                .filter(Connection::isEvictable)
                .map(Candidate::new)
                .sorted(ORDER)
                .limit(CANDIDATES)
                .forEach(candidates::add);
    }
}
