package dev.nereid.spi;

import java.lang.foreign.MemorySegment;

/**
 * Scratch memory of an instance. Owned by its holder, which closes it before the close of the instance returns.
 * <em>Implemented by the server.</em>
 *
 * <p>It may become an output: {@code put(name, tensor, memory::close)}. The instance is closed after such a release has run,
 * however long the client reads. {@link Model#memoryUsage} contains it only if the model adds it, as it should with memory that
 * instances hold between executions.
 *
 * @since 1.0
 */
public interface AllocatedMemory extends AutoCloseable {
    /**
     * Returns the memory. Any thread may use it until it is closed; {@link #place()} says whether Java code may read
     * and write it.
     *
     * @return a segment of exactly the requested size, aligned to 64 bytes, content undefined; an address and a size
     *     alone for memory of a device
     */
    MemorySegment segment();

    /**
     * Returns where the memory lies.
     *
     * @return the place that was asked for, or {@link MemoryPlace#HOST} in place of pinned memory that the server does
     *     not have
     */
    MemoryPlace place();

    /** Frees the memory, on any thread. Work of a device on it has ended before. Later calls do nothing. */
    @Override
    void close();
}
