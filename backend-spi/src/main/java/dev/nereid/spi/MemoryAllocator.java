package dev.nereid.spi;

/**
 * Allocates scratch memory of one place, within the limits of the server. Safe for use by any thread. <em>Implemented
 * by the server.</em>
 *
 * @since 1.0
 */
public interface MemoryAllocator {
    /**
     * Returns where the memory lies.
     *
     * @return the place that was asked for, or {@link MemoryPlace#HOST} in place of pinned memory that the server does
     *     not have
     */
    MemoryPlace place();

    /**
     * Allocates memory. Never blocks.
     *
     * @param byteSize the size needed, 0 or more
     * @return memory of exactly this size, aligned to 64 bytes, content undefined; owned by the caller
     * @throws BackendException {@link ErrorCode#UNAVAILABLE} if there is no memory
     * @throws IllegalArgumentException if the size is negative
     */
    AllocatedMemory allocate(long byteSize);
}
