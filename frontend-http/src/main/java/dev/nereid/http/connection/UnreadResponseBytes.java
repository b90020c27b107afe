package dev.nereid.http.connection;

import java.util.concurrent.atomic.AtomicLong;

/** Limits memory of responses that clients do not read, over all event loops. Lock-free; safe for use by any thread. */
final class UnreadResponseBytes {
    /** The share of the heap that unread responses may take. */
    private static final int HEAP_DIVISOR = 8;

    private static final long MIN_BYTES = 16 << 20;

    private final long max;
    private final AtomicLong total = new AtomicLong();

    /** Creates a limit derived from the size of the heap. */
    UnreadResponseBytes() {
        this(Math.max(MIN_BYTES, Runtime.getRuntime().maxMemory() / HEAP_DIVISOR));
    }

    /** Creates a limit of a number of bytes. */
    UnreadResponseBytes(long max) {
        this.max = max;
    }

    /**
     * Replaces an event loop's previous count by its current count. Returns the bytes that may stay: beyond the limit
     * each event loop closes connections until all event loops together are at half of it.
     */
    long replace(long before, long now) {
        long sum = total.addAndGet(now - before);
        return sum <= max ? now : (long) (now * (max / 2.0 / sum));
    }
}
