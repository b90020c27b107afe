package dev.nereid.grpc.connection;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Limits responses that wait for slow clients by closing stalled connections. Safe for use by any thread: guarded by
 * one lock, which is taken a few times a second for each busy connection and never for a single call.
 *
 * <p>A connection is stalled while responses wait on it and no byte leaves, whatever window the client grants. A connection
 * that is stalled for too long is disconnected. If all connections together have more responses waiting than their
 * share, those stalled longest are disconnected at once until the rest fits, and then those that read next to nothing of what
 * waits, so that clients that read never notice.
 */
public final class UnreadResponses {
    /** For how long nothing must have moved before a connection counts as stalled: pauses of readers are shorter. */
    static final long MIN_STALL_NANOS = 500_000_000;

    private static final long NOT_STALLED = Long.MIN_VALUE;

    /** Over what time it is measured how fast a client reads. */
    private static final long MEASURED_NANOS = 1_000_000_000;

    /** The bytes that a client reads in a second of each response that waits, at least: it takes long for the smallest. */
    private static final double MIN_RATE = 16;

    /** In how many seconds a client reads the large responses that wait, at most. */
    private static final double MAX_SECONDS = 1024;

    /** Added to the bytes of a connection that was taken out, so that they are known not to be among those of all. */
    private static final long REMOVED = Long.MIN_VALUE / 2;

    /**
     * Limits of waiting responses.
     *
     * @param responses responses of all connections that may wait before stalled connections are disconnected
     * @param bytes bytes of large responses, likewise
     * @param stallNanos for how long a connection may be stalled; {@link Long#MAX_VALUE} for any time
     */
    public record Limits(long responses, long bytes, long stallNanos) {}

    private final Limits limits;
    private final LongSupplier nanoTime;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Set<Connection> connections = new HashSet<>();

    @GuardedBy("lock")
    private long waiting;

    private final AtomicLong bytes = new AtomicLong();

    public UnreadResponses(Limits limits, LongSupplier nanoTime) {
        this.limits = limits;
        this.nanoTime = nanoTime;
    }

    /**
     * Adds a connection on which nothing waits.
     *
     * @param disconnect ends the connection, for the reason given; called at most once, on any thread, without the
     *     lock
     */
    Connection register(Consumer<String> disconnect) {
        Connection connection = new Connection(disconnect);
        lock.lock();
        try {
            connections.add(connection);
        } finally {
            lock.unlock();
        }
        return connection;
    }

    /** Returns how many responses wait, as far as connections have told. */
    long waiting() {
        lock.lock();
        try {
            return waiting;
        } finally {
            lock.unlock();
        }
    }

    /** Returns how many bytes of large responses wait. */
    long waitingBytes() {
        return bytes.get();
    }

    private void disconnect(List<Connection> chosen, String reason) {
        for (Connection connection : chosen) {
            connection.disconnect.accept(reason);
        }
    }

    /**
     * Chooses connections until what waits on the others fits: those stalled longest first, then those that read least of
     * what waits.
     */
    @GuardedBy("lock")
    private List<Connection> excess(long now) {
        long excess = waiting - limits.responses();
        long excessBytes = bytes.get() - limits.bytes();
        if (excess <= 0 && excessBytes <= 0) {
            return List.of();
        }
        List<Connection> candidates = new ArrayList<>();
        for (Connection connection : connections) {
            if (connection.isStalled(now) || connection.progress() < 1) {
                candidates.add(connection);
            }
        }
        candidates.sort(Comparator.comparingLong(
                        (Connection connection) -> connection.isStalled(now) ? -connection.stall(now) : 0)
                .thenComparingDouble(Connection::progress));
        List<Connection> chosen = new ArrayList<>();
        for (Connection connection : candidates) {
            if (excess <= 0 && excessBytes <= 0) {
                break;
            }
            excess -= connection.own;
            excessBytes -= connection.bytes.get();
            chosen.add(connection);
        }
        chosen.forEach(this::remove);
        return chosen;
    }

    @GuardedBy("lock")
    private void remove(Connection connection) {
        if (connections.remove(connection)) {
            waiting -= connection.own;
            connection.own = 0;
            connection.since = NOT_STALLED;
            bytes.addAndGet(-connection.bytes.getAndAdd(REMOVED));
        }
    }

    /**
     * The waiting responses of one connection. Safe for use by any thread: its fields are guarded by the lock of all,
     * unless they are atomic or volatile.
     */
    final class Connection {
        private final Consumer<String> disconnect;
        private final AtomicLong bytes = new AtomicLong();

        private long own;

        /** How many bytes have left. */
        private long sent = Long.MIN_VALUE;

        /** Since when nothing has moved. */
        private long since = NOT_STALLED;

        private volatile boolean wasStalled;

        // Since when it is measured how fast the client reads, what had left then, and the last result in bytes per
        // second.
        private long measuredSince;
        private long sentBefore;
        private double rate = Double.POSITIVE_INFINITY;

        private Connection(Consumer<String> disconnect) {
            this.disconnect = disconnect;
        }

        /**
         * Tells what waits, and disconnects this connection or others if that is too much for too long.
         *
         * @param responses how many responses wait
         * @param nowSent how many bytes have left, at least
         */
        void observe(long responses, long nowSent) {
            List<Connection> tooSlow = List.of();
            List<Connection> tooMuch;
            lock.lock();
            try {
                if (!connections.contains(this)) {
                    return;
                }
                long now = nanoTime.getAsLong();
                waiting += responses - own;
                own = responses;
                if (responses > 0 && since != NOT_STALLED) {
                    if (nowSent > sent) {
                        since = now;
                    }
                    sent = Math.max(sent, nowSent);
                    measure(now);
                } else {
                    since = responses > 0 ? now : NOT_STALLED;
                    sent = Math.max(sent, nowSent);
                    measuredSince = now;
                    sentBefore = sent;
                    rate = Double.POSITIVE_INFINITY;
                }
                if (stall(now) >= limits.stallNanos()) {
                    remove(this);
                    tooSlow = List.of(this);
                }
                wasStalled = isStalled(now);
                tooMuch = excess(now);
            } finally {
                lock.unlock();
            }
            disconnect(tooSlow, "responses are not read");
            disconnect(tooMuch, "responses are not read, and too many wait");
        }

        private void measure(long now) {
            long nanos = now - measuredSince;
            if (nanos >= MEASURED_NANOS) {
                rate = (sent - sentBefore) * 1e9 / nanos;
                measuredSince = now;
                sentBefore = sent;
            }
        }

        /** Returns how fast the client reads what waits; less than 1 if that is next to nothing. */
        private double progress() {
            return since == NOT_STALLED
                    ? Double.POSITIVE_INFINITY
                    : rate / (own * MIN_RATE + bytes.get() / MAX_SECONDS);
        }

        private boolean isStalled(long now) {
            return stall(now) >= MIN_STALL_NANOS;
        }

        private long stall(long now) {
            return since == NOT_STALLED ? 0 : now - since;
        }

        /** Says whether nothing had moved for a while although responses waited, when that was observed. Never waits. */
        boolean wasStalled() {
            return wasStalled;
        }

        /** Counts the bytes of a large response as waiting. */
        void addBytes(long count) {
            if (bytes.addAndGet(count) > REMOVED / 2) {
                UnreadResponses.this.bytes.addAndGet(count);
            }
        }

        /** Ends the count of {@link #addBytes}. */
        void removeBytes(long count) {
            addBytes(-count);
        }

        /** Takes the connection out. Later calls do nothing. */
        void unregister() {
            lock.lock();
            try {
                remove(this);
            } finally {
                lock.unlock();
            }
        }
    }
}
