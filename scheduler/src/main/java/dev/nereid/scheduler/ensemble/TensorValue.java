package dev.nereid.scheduler.ensemble;

import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import org.jspecify.annotations.Nullable;

/**
 * The content of an ensemble tensor, or its absence. Immutable; its memory is counted by references.
 *
 * @param tensor the content; {@code null} for an optional input that the client omitted, or an output that a step did
 *     not write
 * @param memory the memory of the content, freed by its last release; {@code null} without content
 * @param batchSize the first dimension of the content, if the model that wrote it batches; else 0
 * @param mark the position in a sequence that a step gave it; {@code null} for the request's position
 */
record TensorValue(
        @Nullable Tensor tensor,
        @Nullable ReferenceCountedMemory memory,
        int batchSize,
        @Nullable Mark mark) {
    /** A position in a sequence, or none, in place of the request's position. */
    record Mark(@Nullable Sequence sequence) {}

    /** Creates the value of a tensor that nothing wrote. */
    static TensorValue absent(@Nullable Mark mark) {
        return new TensorValue(null, null, 0, mark);
    }

    /** Adds a reference to the memory; the caller holds one. */
    void retain() {
        if (memory != null) {
            memory.retain();
        }
    }

    void release() {
        if (memory != null) {
            memory.release();
        }
    }

    long byteSize() {
        return tensor == null ? 0 : tensor.byteSize();
    }
}
