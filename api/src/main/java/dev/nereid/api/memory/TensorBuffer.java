package dev.nereid.api.memory;

import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;

/** A buffer of pooled tensor memory. Owned by its holder, and closed exactly once. */
public interface TensorBuffer extends AutoCloseable {
    /**
     * Returns the memory. Any thread may use it; not after the buffer was closed.
     *
     * @return a segment of exactly the requested size
     */
    MemorySegment segment();

    /**
     * Returns where the memory lies.
     *
     * @return memory of the host unless the buffer says otherwise
     */
    default MemoryPlace place() {
        return MemoryPlace.HOST;
    }

    /**
     * Returns the memory to the pool. May be called on any thread.
     *
     * @throws IllegalStateException if it was closed before
     */
    @Override
    void close();
}
