package dev.nereid.api.memory;

import java.lang.foreign.MemorySegment;

/** A buffer of pooled tensor memory. Owned by whoever holds it, and given back exactly once. */
public interface TensorBuffer extends AutoCloseable {
    /**
     * Returns the memory. Any thread may use it; not after the buffer was closed.
     *
     * @return a segment of exactly the size asked for
     */
    MemorySegment segment();

    /**
     * Gives the memory back to the pool. May be called on any thread.
     *
     * @throws IllegalStateException if it was given back before
     */
    @Override
    void close();
}
