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
 * <p>A search looks at all connections and keeps several, so that not every new connection needs one. If there is none,
 * other event loops are preferred for a while.
 */
final class IdleConnections {
    /** How many connections are found by one search. */
    static final int CANDIDATES = 64;

    /** How soon connections are searched for again if there were none. */
    static final long SEARCH_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    /** How long the event loop may take to begin to close one, before others are preferred. */
    static final long MAX_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Connections that never served a request go first: they are no loss to their clients. */
    private static final Comparator<Candidate> ORDER =
            Comparator.comparing(Candidate::hasResponded).thenComparing((a, b) -> Long.signum(a.since - b.since));

    /** A connection that can be evicted while it is idle. */
    interface Connection {
        /** Says whether it is still there. */
        boolean isOpen();

        /** Says whether it may be closed to make room for others. */
        boolean isEvictable();

        /** Says whether it has ever served a request. */
        boolean hasResponded();

        /** Returns since when it is idle. */
        long idleSince();

        /** Closes it at once. */
        void abort();
    }

    /**
     * A connection that was idle when it was found. Immutable.
     *
     * @param connection the connection
     * @param hasResponded whether it had served a request
     * @param since since when it was idle; it was used if that has changed
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
    /** How often the event loop was asked to close one and has not begun to, and since when. */
    private final AtomicInteger pendingEvictions = new AtomicInteger();

    private volatile long evictionPendingSince;

    /**
     * Begins with any connections.
     *
     * @param connections all connections of the event loop, a view
     * @param clock the time in nanoseconds, from any origin
     */
    IdleConnections(Collection<? extends Connection> connections, LongSupplier clock) {
        this.connections = connections;
        this.clock = clock;
        oldestSince = clock.getAsLong();
        searchAgainAt = oldestSince;
    }

    /** Says whether there may be one. May be called on any thread. */
    boolean mayExist() {
        long now = clock.getAsLong();
        return now - searchAgainAt >= 0 && (!isEvictionPending() || now - evictionPendingSince <= MAX_WAIT_NANOS);
    }

    /** Notes that the event loop is asked to close one. Called by the thread that accepts. */
    void requestEviction() {
        if (!isEvictionPending()) {
            evictionPendingSince = clock.getAsLong();
        }
        pendingEvictions.incrementAndGet();
    }

    /** Notes that the event loop begins to close one, or never will. May be called on any thread. */
    void evictionStarted() {
        evictionPendingSince = clock.getAsLong();
        pendingEvictions.decrementAndGet();
    }

    /** Says whether the event loop was asked to close one and has not begun to. May be called on any thread. */
    boolean isEvictionPending() {
        return pendingEvictions.get() > 0;
    }

    /** Returns about when the connection that has been idle for the longest time began to be. On any thread. */
    long oldestSince() {
        return oldestSince;
    }

    /** Notes when the connection that has been idle for the longest time began to be. */
    void setOldestSince(long since) {
        oldestSince = since;
    }

    /** Closes the connection that has been idle for the longest time, at once, if there is one. */
    void closeOldest() {
        Candidate found = next();
        if (found == null) {
            search();
            found = next();
        }
        if (found != null) {
            oldestSince = found.since;
            found.connection.abort();
        } else {
            long now = clock.getAsLong();
            oldestSince = now;
            searchAgainAt = now + SEARCH_NANOS;
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
