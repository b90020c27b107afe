package dev.nereid.api;

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
     * @return the sum of the sizes asked for, in bytes
     */
    long bytesInUse();
}
