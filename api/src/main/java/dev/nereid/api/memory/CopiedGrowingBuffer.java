package dev.nereid.api.memory;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** Grows by copying its content into a buffer of twice the size. Confined to one thread. */
final class CopiedGrowingBuffer implements GrowingBuffer {
    private static final long INITIAL_SIZE = 4096;

    private final TensorMemory memory;
    private final long capacity;
    private @Nullable TensorBuffer buffer;
    private MemorySegment segment = MemorySegment.NULL;
    private boolean closed;

    CopiedGrowingBuffer(TensorMemory memory, long capacity) {
        this.memory = memory;
        this.capacity = capacity;
    }

    @Override
    public MemorySegment grow(long byteSize) {
        if (closed || byteSize > capacity) {
            throw new IllegalStateException("byteSize: " + byteSize + (closed ? ", of a closed buffer" : "")
                    + " (expected: at most the capacity, " + capacity + ")");
        }
        if (byteSize > segment.byteSize()) {
            long doubled = Math.max(INITIAL_SIZE, 2 * segment.byteSize());
            TensorBuffer larger = memory.allocate(Math.max(byteSize, Math.min(doubled, capacity)));
            larger.segment().asSlice(0, segment.byteSize()).copyFrom(segment);
            TensorBuffer before = buffer;
            buffer = larger;
            segment = larger.segment();
            if (before != null) {
                before.close();
            }
        }
        return segment;
    }

    @Override
    public MemorySegment segment() {
        return segment;
    }

    @Override
    public void close() {
        if (closed) {
            throw new IllegalStateException("buffer: closed before (expected: closed once)");
        }
        closed = true;
        if (buffer != null) {
            buffer.close();
        }
    }
}
