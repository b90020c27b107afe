package dev.nereid.http.connection;

import io.netty.channel.Channel;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;

/**
 * Connections of a port with an incomplete TLS handshake. Safe for use by any thread: guarded by a lock, which is
 * acquired twice for each connection.
 */
final class Handshakes {
    private final ReentrantLock lock = new ReentrantLock();
    private final LongSupplier clock;
    /** The start of each handshake, the oldest first. */
    private final SequencedMap<Channel, Long> begun = new LinkedHashMap<>();

    /** Creates an empty set. The clock counts nanoseconds from any origin. */
    Handshakes(LongSupplier clock) {
        this.clock = clock;
    }

    void begin(Channel connection) {
        lock.lock();
        try {
            begun.putLast(connection, clock.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    /** Removes a connection after its handshake is complete, or it is closed. */
    void end(Channel connection) {
        lock.lock();
        try {
            begun.remove(connection);
        } finally {
            lock.unlock();
        }
    }

    /** Removes the oldest connection, to be closed; empty if no handshake has lasted for {@code minNanos}. */
    Optional<Channel> poll(long minNanos) {
        lock.lock();
        try {
            Map.Entry<Channel, Long> oldest = begun.firstEntry();
            if (oldest == null || clock.getAsLong() - oldest.getValue() < minNanos) {
                return Optional.empty();
            }
            begun.pollFirstEntry();
            return Optional.of(oldest.getKey());
        } finally {
            lock.unlock();
        }
    }
}
