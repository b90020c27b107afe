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
     * Returns how much memory is handed out and not yet given back.
     *
     * @return the sum of the sizes asked for, in bytes
     */
    long bytesInUse();
}
