package dev.nereid.grpc.connection;

import java.util.function.LongSupplier;

/**
 * Limits how often an event may happen on one connection per time window. Confined to the event loop of its
 * connection.
 */
final class FrameBudget {
    private static final long WINDOW_NANOS = 10_000_000_000L;
    private static final int MAX_WINDOWS = 4;

    private final long allowed;
    private final LongSupplier nanoTime;
    private long left;
    private long windowStart;

    /**
     * Creates a budget.
     *
     * @param allowed the number of events within ten seconds
     */
    FrameBudget(int allowed, LongSupplier nanoTime) {
        this.allowed = allowed;
        this.nanoTime = nanoTime;
        this.left = allowed;
        this.windowStart = nanoTime.getAsLong();
    }

    /** Allows one more event, up to the budget of a few windows. */
    void earn() {
        if (left < MAX_WINDOWS * allowed) {
            left++;
        }
    }

    /** Counts an event. Returns false if it exceeds the budget. */
    boolean spend() {
        if (--left >= 0) {
            return true;
        }
        long now = nanoTime.getAsLong();
        if (now - windowStart < WINDOW_NANOS) {
            return false;
        }
        windowStart = now;
        left = allowed - 1;
        return true;
    }
}
