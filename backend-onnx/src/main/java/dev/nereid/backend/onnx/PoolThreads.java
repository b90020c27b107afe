package dev.nereid.backend.onnx;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Bounds the threads in the separate pools of sessions. Safe for use by any thread.
 *
 * <p>Each session may have a pool with a thread for each processor: with a thousand models that would be a thousand
 * pools. Their threads cost memory and time to start and stop, and compete for the same processors. The models that are
 * loaded beyond the bound share one pool.
 */
final class PoolThreads {
    private static final int POOLS = 64;

    private final int limit;
    private final AtomicInteger used = new AtomicInteger();

    /** Creates a bound without threads: enough for 64 pools with all processors that the server may use. */
    PoolThreads(int processors) {
        limit = POOLS * Math.max(1, processors - 1);
    }

    /** Takes threads of a pool, 0 or more, out of the bound; returns {@code false} and takes none if it has fewer. */
    boolean acquire(int threads) {
        int before = used.getAndUpdate(now -> now + threads <= limit ? now + threads : now);
        return before + threads <= limit;
    }

    /** Gives the threads of a pool back that was acquired. */
    void release(int threads) {
        used.addAndGet(-threads);
    }
}
