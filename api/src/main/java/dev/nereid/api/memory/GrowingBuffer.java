package dev.nereid.api.memory;

import dev.nereid.api.InferenceException;
import java.lang.foreign.MemorySegment;

/** A buffer of pooled memory that grows while it is filled. Confined to one thread while it grows. */
public interface GrowingBuffer extends TensorBuffer {
    /**
     * Makes the buffer larger, keeping its content. Segments from before are not to be used any more.
     *
     * @param byteSize how much is needed; at most the capacity
     * @return all memory that the buffer has now: at least so much, aligned to 64 bytes
     * @throws InferenceException with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if there is no memory; the buffer is
     *     as it was
     */
    MemorySegment grow(long byteSize);

    /**
     * Returns the memory that the buffer has so far, which may be none.
     *
     * @return a segment that is not to be used after the buffer grew or was closed
     */
    @Override
    MemorySegment segment();
}
