package dev.nereid.http.json;

import dev.nereid.api.InferenceException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** Limits the heap memory of large JSON texts, over all event loops. Lock-free; safe for use by any thread. */
public final class JsonMemoryLimiter {
    /** The share of the heap that the texts may take. */
    private static final int HEAP_DIVISOR = 4;

    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    private final long max;
    private final AtomicLong reserved = new AtomicLong();

    /** Creates a limiter derived from the size of the heap. */
    public JsonMemoryLimiter() {
        this(Runtime.getRuntime().maxMemory() / HEAP_DIVISOR);
    }

    /** Creates a limiter of a number of bytes. */
    public JsonMemoryLimiter(long max) {
        this.max = max;
    }

    /**
     * Reserves memory, to be released.
     *
     * @throws InferenceException if that would exceed the limit; nothing is reserved
     */
    public void reserve(long bytes) {
        if (reserved.addAndGet(bytes) > max) {
            reserved.addAndGet(-bytes);
            throw InferenceException.overloaded(
                    "not enough memory to write the response as JSON now; request its outputs as binary data",
                    RETRY_AFTER);
        }
    }

    public void release(long bytes) {
        reserved.addAndGet(-bytes);
    }

    public long reserved() {
        return reserved.get();
    }

    /** Returns the number of bytes to release to reach half of the limit; 0 unless the limit is nearly reached. */
    public long shortage() {
        long now = reserved.get();
        return now > max - max / 4 ? now - max / 2 : 0;
    }
}
