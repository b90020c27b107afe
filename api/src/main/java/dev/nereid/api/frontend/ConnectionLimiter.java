package dev.nereid.api.frontend;

import static java.util.Objects.requireNonNull;

import java.net.InetAddress;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Limits the number of open connections, in all and for each client address. Safe for use by any thread: atomic
 * counters, and a concurrent map where addresses are limited.
 *
 * <p>Front ends that share one limiter share its limits. A connection is counted from {@link #tryOpen} to
 * {@link #closed}; the limits are never exceeded, not even for a moment. Addresses are held only while they have an
 * open connection, and only if their connections are limited.
 */
public final class ConnectionLimiter {
    private final int max;
    private final int maxPerAddress;
    private final AtomicInteger open = new AtomicInteger();
    private final AtomicLong refused = new AtomicLong();
    private final ConcurrentHashMap<InetAddress, Integer> openByAddress = new ConcurrentHashMap<>();

    /**
     * Creates a limiter without open connections.
     *
     * @param max the limit on open connections; 0 for none
     * @param maxPerAddress the limit on open connections of one client address; 0 for none
     */
    public ConnectionLimiter(int max, int maxPerAddress) {
        if (max < 0 || maxPerAddress < 0) {
            throw new IllegalArgumentException(
                    "connections: " + max + ", " + maxPerAddress + " per address (expected: each 0 or more)");
        }
        this.max = max;
        this.maxPerAddress = maxPerAddress;
    }

    /**
     * Creates a limiter that refuses nothing.
     *
     * @return the limiter
     */
    public static ConnectionLimiter unlimited() {
        return new ConnectionLimiter(0, 0);
    }

    /**
     * Counts a new connection if both limits allow it. Never blocks.
     *
     * @param client the address of the client
     * @return whether the connection was counted; the caller then calls {@link #closed} once at its end. If not, the
     *     caller closes the connection without serving it.
     */
    public boolean tryOpen(InetAddress client) {
        requireNonNull(client, "client");
        if (!tryCount()) {
            refused.incrementAndGet();
            return false;
        }
        if (maxPerAddress > 0 && !tryCountOf(client)) {
            open.decrementAndGet();
            refused.incrementAndGet();
            return false;
        }
        return true;
    }

    /**
     * Ends the count of a connection for which {@link #tryOpen} returned {@code true}. Never blocks.
     *
     * @param client the address that was passed there
     */
    public void closed(InetAddress client) {
        requireNonNull(client, "client");
        if (maxPerAddress > 0) {
            openByAddress.computeIfPresent(client, (_, count) -> count == 1 ? null : count - 1);
        }
        open.decrementAndGet();
    }

    /**
     * Returns the number of open connections.
     *
     * @return the number at this moment
     */
    public int open() {
        return open.get();
    }

    /**
     * Returns the limit on open connections.
     *
     * @return the limit, or {@link Integer#MAX_VALUE} if there is none
     */
    public int max() {
        return max == 0 ? Integer.MAX_VALUE : max;
    }

    /**
     * Says whether the connections of one client are below their limit.
     *
     * @param client the address of the client
     * @return whether the limit of its address allows one more connection
     */
    public boolean isBelowAddressLimit(InetAddress client) {
        requireNonNull(client, "client");
        return maxPerAddress == 0 || openByAddress.getOrDefault(client, 0) < maxPerAddress;
    }

    /**
     * Returns the number of refused connections.
     *
     * @return the number since the start
     */
    public long refused() {
        return refused.get();
    }

    private boolean tryCount() {
        while (true) {
            int before = open.get();
            if (max > 0 && before >= max) {
                return false;
            }
            if (open.compareAndSet(before, before + 1)) {
                return true;
            }
        }
    }

    private boolean tryCountOf(InetAddress client) {
        boolean[] counted = new boolean[1];
        openByAddress.compute(client, (_, count) -> {
            int before = count == null ? 0 : count;
            counted[0] = before < maxPerAddress;
            return counted[0] ? Integer.valueOf(before + 1) : count;
        });
        return counted[0];
    }
}
