package dev.nereid.api.memory;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.MemoryPlace;
import java.util.Optional;

/**
 * A pool of memory outside the heap for the content of tensors. Safe for use by any thread.
 */
public interface TensorMemory {
    /**
     * Allocates a buffer from the pool, or a new one.
     *
     * @param byteSize the size needed, 0 or more
     * @return a buffer of exactly this size, aligned to 64 bytes, content undefined; owned by the caller
     * @throws InferenceException with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if there is no memory
     */
    TensorBuffer allocate(long byteSize);

    /**
     * Allocates a buffer of zeros, for memory that foreign code fills. It reveals nothing of earlier requests if that
     * code fills it only in part.
     *
     * @param byteSize the size needed, 0 or more
     * @return a buffer as of {@link #allocate}, with every byte 0
     * @throws InferenceException as {@link #allocate} does
     */
    default TensorBuffer allocateZeroed(long byteSize) {
        TensorBuffer buffer = allocate(byteSize);
        buffer.segment().fill((byte) 0);
        return buffer;
    }

    /**
     * Returns the identity of a GPU.
     *
     * @param gpu its number
     * @return as of the driver; empty for GPUs that are not used
     */
    default Optional<String> gpuUuid(int gpu) {
        return Optional.empty();
    }

    /**
     * Returns how much pinned memory is in use.
     *
     * @return the bytes in use and all there are; empty for none
     */
    default Optional<DeviceMemory.Use> pinnedUse() {
        return Optional.empty();
    }

    /**
     * Allocates a buffer in one place. Memory of the host is that of {@link #allocate(long)}, also in place of pinned
     * memory of which none is left.
     *
     * @param byteSize the size needed, 0 or more
     * @param place where the buffer lies
     * @return a buffer as of {@link #allocate(long)}, {@link #allocatePinned} or {@link DeviceMemory#allocate}; {@link
     *     TensorBuffer#place} says which
     * @throws InferenceException as they do
     * @throws IllegalArgumentException if there is no memory in that place, as {@link #device} says
     */
    default TensorBuffer allocate(long byteSize, MemoryPlace place) {
        if (place.kind() == MemoryPlace.Kind.PINNED) {
            return allocatePinned(byteSize).orElseGet(() -> allocate(byteSize));
        }
        if (place.isHost()) {
            return allocate(byteSize);
        }
        return device(place)
                .orElseThrow(() -> new IllegalArgumentException(
                        "place: " + place + " (expected: of the host, or of a device with memory)"))
                .allocate(byteSize);
    }

    /**
     * Allocates pinned memory of the host, which GPUs copy from and to without a detour. Never blocks.
     *
     * @param byteSize the size needed, 0 or more
     * @return a buffer as of {@link #allocate(long)}; empty if none is left, or there is none
     */
    default Optional<TensorBuffer> allocatePinned(long byteSize) {
        return Optional.empty();
    }

    /**
     * Returns the memory of a place that Java code cannot access.
     *
     * @param place the place
     * @return its memory; empty for places of the host, and for places without such memory
     */
    default Optional<DeviceMemory> device(MemoryPlace place) {
        return Optional.empty();
    }

    /**
     * Creates a buffer that grows while bytes arrive. It has no memory before it {@linkplain GrowingBuffer#grow grows},
     * unless idle memory of the right size is available.
     *
     * @param capacity its maximum size, 0 or more
     * @return the buffer, owned by the caller
     * @throws InferenceException with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if there is no memory, or if the
     *     capacity exceeds the limit
     */
    default GrowingBuffer reserve(long capacity) {
        return new CopiedGrowingBuffer(this, capacity);
    }

    /**
     * Counts bytes that a front end holds elsewhere. They count as if they were a buffer in use; an example is a
     * message that has arrived in part. Allocates nothing.
     *
     * @param byteSize the number of bytes, 0 or more; {@link #releaseBytes} ends their count, at once or in parts
     * @throws InferenceException with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if there is no memory
     */
    default void reserveBytes(long byteSize) {}

    /**
     * Ends the count of bytes that {@link #reserveBytes} counted.
     *
     * @param byteSize the number of bytes, 0 or more
     */
    default void releaseBytes(long byteSize) {}

    /**
     * Returns the memory in use: of buffers that are not closed.
     *
     * @return the sum of the requested sizes, in bytes; of growing buffers, their present size
     */
    long bytesInUse();

    /**
     * Returns the limit on the memory of the pool, in use and idle together.
     *
     * @return the limit in bytes; {@link Long#MAX_VALUE} if there is none
     */
    default long limit() {
        return Long.MAX_VALUE;
    }

    /**
     * Returns the size of the largest possible buffer while no other is in use. It may be less than the {@linkplain
     * #limit limit}, part of which may be reserved for small buffers.
     *
     * @return the size in bytes; {@link Long#MAX_VALUE} if there is no limit
     */
    default long largestBuffer() {
        return Long.MAX_VALUE;
    }
}
