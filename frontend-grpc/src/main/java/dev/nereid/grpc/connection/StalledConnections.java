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
 * <p>A connection is stalled while responses wait on it and no byte leaves, whatever window the client grants. A
 * connection that is stalled for too long is disconnected. If the waiting responses of all connections exceed the
 * limits, connections are disconnected at once until the rest fits: first connections that are stalled longest, then
 * connections with clients that read almost nothing. Clients that read are never affected.
 */
public final class StalledConnections {
    /** The minimum time without progress on a stalled connection. Pauses of clients that read are shorter. */
    static final long MIN_STALL_NANOS = 500_000_000;

    private static final long NOT_STALLED = Long.MIN_VALUE;

    /** The period over which the read rate of a client is measured. */
    private static final long MEASURED_NANOS = 1_000_000_000;

    /** The minimum read rate in bytes per second for each waiting response. The smallest responses take long at it. */
    private static final double MIN_RATE = 16;

    /** The maximum number of seconds in which a client reads the large responses that wait. */
    private static final double MAX_SECONDS = 1024;

    /** Added to the bytes of a removed connection. It marks them as not counted in the total. */
    private static final long REMOVED = Long.MIN_VALUE / 2;

    /**
     * Limits of waiting responses.
     *
     * @param responses responses of all connections that may wait before stalled connections are disconnected
     * @param bytes bytes of large responses, likewise
     * @param stallNanos the maximum time that a connection may be stalled; {@link Long#MAX_VALUE} for any time
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

    public StalledConnections(Limits limits, LongSupplier nanoTime) {
        this.limits = limits;
        this.nanoTime = nanoTime;
    }

    /**
     * Adds a connection without waiting responses.
     *
     * @param disconnect closes the connection for the given reason; called at most once, on any thread, without the
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

    /** Returns the number of waiting responses that connections have reported. */
    long waiting() {
        lock.lock();
        try {
            return waiting;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the number of waiting bytes of large responses. */
    long waitingBytes() {
        return bytes.get();
    }

    private void disconnect(List<Connection> chosen, String reason) {
        for (Connection connection : chosen) {
            connection.disconnect.accept(reason);
        }
    }

    /** Chooses connections to disconnect until the rest fits: first the longest stalled, then the slowest clients'. */
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

        /** The number of bytes sent. */
        private long sent = Long.MIN_VALUE;

        /** The time of the last progress. */
        private long since = NOT_STALLED;

        private volatile boolean wasStalled;

        // The start of the current measurement of the read rate, the bytes sent before it, and the last rate in bytes
        // per second.
        private long measuredSince;
        private long sentBefore;
        private double rate = Double.POSITIVE_INFINITY;

        private Connection(Consumer<String> disconnect) {
            this.disconnect = disconnect;
        }

        /**
         * Reports the waiting responses, and disconnects this connection or others if they exceed the limits.
         *
         * @param responses the number of waiting responses
         * @param nowSent the number of bytes sent, at least
         */
        void observe(long responses, long nowSent) {
            List<Connection> stalled = List.of();
            List<Connection> excess;
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
                    stalled = List.of(this);
                }
                wasStalled = isStalled(now);
                excess = excess(now);
            } finally {
                lock.unlock();
            }
            disconnect(stalled, "responses are not read");
            disconnect(excess, "responses are not read, and too many wait");
        }

        private void measure(long now) {
            long nanos = now - measuredSince;
            if (nanos >= MEASURED_NANOS) {
                rate = (sent - sentBefore) * 1e9 / nanos;
                measuredSince = now;
                sentBefore = sent;
            }
        }

        /** Returns the read rate as a multiple of the minimum. It is less than 1 if the client reads almost nothing. */
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

        /** Says whether the connection was stalled when it was last observed. Never blocks. */
        boolean wasStalled() {
            return wasStalled;
        }

        /** Counts the bytes of a large response as waiting. */
        void addBytes(long count) {
            if (bytes.addAndGet(count) > REMOVED / 2) {
                StalledConnections.this.bytes.addAndGet(count);
            }
        }

        /** Ends the count of {@link #addBytes}. */
        void removeBytes(long count) {
            addBytes(-count);
        }

        /** Removes the connection. Repeated removal does nothing. */
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
