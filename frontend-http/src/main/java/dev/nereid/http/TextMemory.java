package dev.nereid.http;

import dev.nereid.api.InferenceException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Bounds the heap that long texts take, from the moment they are written until they were sent, over all event loops and
 * workers of a front end. Lock-free; safe for use by any thread.
 */
final class TextMemory {
    /** The share of the heap that those texts may take. */
    private static final int HEAP_DIVISOR = 4;

    private static final Duration PAUSE = Duration.ofSeconds(1);

    private final long max;
    private final AtomicLong taken = new AtomicLong();

    /** Begins with nothing, and the bound that follows from the heap. */
    TextMemory() {
        this(Runtime.getRuntime().maxMemory() / HEAP_DIVISOR);
    }

    /** Begins with nothing, and a bound on the bytes. */
    TextMemory(long max) {
        this.max = max;
    }

    /**
     * Reserves memory, to be given back.
     *
     * @throws InferenceException if that would be more than the bound; nothing is reserved
     */
    void reserve(long bytes) {
        if (taken.addAndGet(bytes) > max) {
            taken.addAndGet(-bytes);
            throw InferenceException.overloaded(
                    "not enough memory to write the response as JSON now; ask for its outputs as binary data", PAUSE);
        }
    }

    /** Gives reserved memory back. */
    void release(long bytes) {
        taken.addAndGet(-bytes);
    }

    /** Returns how many bytes are reserved. */
    long reserved() {
        return taken.get();
    }

    /** Returns how many bytes must be given back, so that others have room: half of the bound if it is nearly reached. */
    long shortage() {
        long now = taken.get();
        return now > max - max / 4 ? now - max / 2 : 0;
    }
}
