package dev.nereid.http;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Bounds the memory of the responses that clients of a port do not read, over all event loops. Lock-free; safe for use
 * by any thread.
 */
final class UnreadBytes {
    /** The share of the heap that those responses may take. */
    private static final int HEAP_DIVISOR = 8;

    private static final long MIN_BYTES = 16 << 20;

    private final long max;
    private final AtomicLong total = new AtomicLong();

    /** Begins with nothing, and the bound that follows from the heap. */
    UnreadBytes() {
        this(Math.max(MIN_BYTES, Runtime.getRuntime().maxMemory() / HEAP_DIVISOR));
    }

    /** Begins with nothing, and a bound on the bytes. */
    UnreadBytes(long max) {
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
