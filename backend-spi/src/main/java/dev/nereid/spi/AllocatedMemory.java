package dev.nereid.spi;

import java.lang.foreign.MemorySegment;

/**
 * Scratch memory of a backend. Owned by its holder, and closed once. <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
public interface AllocatedMemory extends AutoCloseable {
    /**
     * Returns the memory. Any thread may use it until it is closed.
     *
     * @return a segment of exactly the requested size; an address and a size alone for memory of a device
     */
    MemorySegment segment();

    /** Frees the memory, on any thread. Later calls do nothing. */
    @Override
    void close();
}
