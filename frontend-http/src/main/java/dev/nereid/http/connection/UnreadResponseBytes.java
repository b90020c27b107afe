package dev.nereid.http.connection;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Limits the memory of responses that clients do not read, over all event loops. Lock-free; safe for use by any
 * thread.
 */
final class UnreadResponseBytes {
    /** The share of the heap that those responses may take. */
    private static final int HEAP_DIVISOR = 8;

    private static final long MIN_BYTES = 16 << 20;

    private final long max;
    private final AtomicLong total = new AtomicLong();

    /** Begins with nothing, and the bound that follows from the heap. */
    UnreadResponseBytes() {
        this(Math.max(MIN_BYTES, Runtime.getRuntime().maxMemory() / HEAP_DIVISOR));
    }

    /** Begins with nothing, and a bound on the bytes. */
    UnreadResponseBytes(long max) {
        this.max = max;
    }

    /**
     * Replaces what an event loop has counted.
     *
     * @param before what it counted last
     * @param now what it counts now
     * @return how much of that may stay: beyond the bound each event loop closes connections until all of them together
     *     take half of it
     */
    long replace(long before, long now) {
        long sum = total.addAndGet(now - before);
        return sum <= max ? now : (long) (now * (max / 2.0 / sum));
    }
}
