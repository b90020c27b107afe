package dev.nereid.server.memory;

import dev.nereid.api.memory.GrowingBuffer;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A buffer with a separate memory mapping. The memory belongs to the holder; the mapping returns to its class, or to
 * the system, when the buffer is closed.
 */
final class MappedBuffer implements GrowingBuffer {
    private final TensorPool pool;
    private final Mapping mapping;
    private final Mapping.@Nullable MappedSizeClass mappedClass;
    private final long capacity;
    private final AtomicBoolean closed = new AtomicBoolean();
    private long used;
    private MemorySegment segment;

    /**
     * Creates a buffer over a mapping.
     *
     * @param mappedClass the class that keeps the mapping idle; {@code null} for the system
     * @param capacity the size to which the buffer may grow
     * @param used the bytes that count as in use
     */
    MappedBuffer(
            TensorPool pool, Mapping mapping, Mapping.@Nullable MappedSizeClass mappedClass, long capacity, long used) {
        this.pool = pool;
        this.mapping = mapping;
        this.mappedClass = mappedClass;
        this.capacity = capacity;
        this.used = used;
        this.segment = mapping.slice(used);
    }

    @Override
    public MemorySegment segment() {
        return segment;
    }

    @Override
    public MemorySegment grow(long byteSize) {
        if (byteSize > used) {
            long larger = pool.grow(mapping, byteSize, capacity);
            pool.use(larger - used);
            used = larger;
            segment = mapping.slice(used);
        }
        return segment;
    }

    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            throw new IllegalStateException("buffer: " + used + " bytes, closed before (expected: closed once)");
        }
        pool.release(mapping, mappedClass, used);
    }
}
