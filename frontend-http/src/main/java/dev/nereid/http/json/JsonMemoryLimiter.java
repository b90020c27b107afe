package dev.nereid.http.json;

import dev.nereid.api.InferenceException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** Limits the heap memory of large JSON texts, over all event loops. Lock-free; safe for use by any thread. */
public final class JsonMemoryLimiter {
    /** The share of the heap that those texts may take. */
    private static final int HEAP_DIVISOR = 4;

    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    private final long max;
    private final AtomicLong taken = new AtomicLong();

    /** Begins with nothing, and the bound that follows from the heap. */
    public JsonMemoryLimiter() {
        this(Runtime.getRuntime().maxMemory() / HEAP_DIVISOR);
    }

    /** Begins with nothing, and a bound on the bytes. */
    public JsonMemoryLimiter(long max) {
        this.max = max;
    }

    /**
     * Reserves memory, to be given back.
     *
     * @throws InferenceException if that would be more than the bound; nothing is reserved
     */
    public void reserve(long bytes) {
        if (taken.addAndGet(bytes) > max) {
            taken.addAndGet(-bytes);
            throw InferenceException.overloaded(
                    "not enough memory to write the response as JSON now; ask for its outputs as binary data",
                    RETRY_AFTER);
        }
    }

    /** Gives reserved memory back. */
    public void release(long bytes) {
        taken.addAndGet(-bytes);
    }

    /** Returns how many bytes are reserved. */
    public long reserved() {
        return taken.get();
    }

    /** Returns how many bytes must be given back, so that others have room: half of the bound if it is nearly reached. */
    public long shortage() {
        long now = taken.get();
        return now > max - max / 4 ? now - max / 2 : 0;
    }
}
