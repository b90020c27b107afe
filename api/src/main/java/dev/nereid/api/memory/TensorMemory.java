package dev.nereid.api.memory;

import dev.nereid.api.InferenceException;

/**
 * A pool of memory outside the heap for the content of tensors. Safe for use by any thread.
 */
public interface TensorMemory {
    /**
     * Takes a buffer from the pool, or makes one.
     *
     * @param byteSize the size needed, 0 or more
     * @return a buffer of exactly this size, aligned to 64 bytes, content undefined; owned by the caller
     * @throws InferenceException with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if there is no memory
     */
    TensorBuffer allocate(long byteSize);

    /**
     * Takes a buffer that holds zeros. For memory that foreign code fills, or leaves unfilled: it shows nothing of
     * earlier requests.
     *
     * @param byteSize the size needed, 0 or more
     * @return a buffer as of {@link #allocate}, every byte of it 0
     * @throws InferenceException as {@link #allocate} does
     */
    default TensorBuffer allocateZeroed(long byteSize) {
        TensorBuffer buffer = allocate(byteSize);
        buffer.segment().fill((byte) 0);
        return buffer;
    }

    /**
     * Takes a buffer that grows while bytes arrive. It takes no memory before it {@linkplain GrowingBuffer#grow grows},
     * unless idle memory of the right size is there.
     *
     * @param capacity how large it may become, 0 or more
     * @return the buffer, owned by the caller
     * @throws InferenceException with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if there is no memory, or never will
     *     be so much
     */
    default GrowingBuffer reserve(long capacity) {
        return new CopiedGrowingBuffer(this, capacity);
    }

    /**
     * Counts bytes that a front end holds elsewhere, for instance of a message that has arrived in part, as if a buffer
     * of this size were handed out. Takes no memory.
     *
     * @param byteSize how many bytes, 0 or more; ended by {@link #releaseBytes}, at once or in parts
     * @throws InferenceException with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if there is no memory
     */
    default void reserveBytes(long byteSize) {}

    /**
     * Ends the count of bytes that {@link #reserveBytes} counted.
     *
     * @param byteSize how many bytes, 0 or more
     */
    default void releaseBytes(long byteSize) {}

    /**
     * Returns how much memory is handed out and not yet given back.
     *
     * @return the sum of the sizes asked for, in bytes; of buffers that grow, what they have so far
     */
    long bytesInUse();

    /**
     * Returns how much memory the pool may hold at a time, handed out and idle together.
     *
     * @return the bound in bytes; {@link Long#MAX_VALUE} if there is none
     */
    default long limit() {
        return Long.MAX_VALUE;
    }

    /**
     * Returns how large one buffer may be while no other is in use. It may be less than the {@linkplain #limit limit}, of
     * which a part may be kept for small buffers.
     *
     * @return the size in bytes; {@link Long#MAX_VALUE} if there is no bound
     */
    default long largestBuffer() {
        return Long.MAX_VALUE;
    }
}
