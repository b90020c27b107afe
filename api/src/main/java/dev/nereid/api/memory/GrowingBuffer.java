package dev.nereid.api.memory;

import dev.nereid.api.InferenceException;
import java.lang.foreign.MemorySegment;

/** A buffer of pooled memory that grows while it is filled. Confined to one thread while it grows. */
public interface GrowingBuffer extends TensorBuffer {
    /**
     * Enlarges the buffer and keeps its content. Earlier segments must not be used any more.
     *
     * @param byteSize the size needed, at most the capacity
     * @return all memory that the buffer has now: at least this size, aligned to 64 bytes
     * @throws InferenceException with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if there is no memory; the buffer is
     *     unchanged
     */
    MemorySegment grow(long byteSize);

    /**
     * Returns the memory that the buffer has so far, which may be none.
     *
     * @return a segment that must not be used after the buffer grew or was closed
     */
    @Override
    MemorySegment segment();
}
