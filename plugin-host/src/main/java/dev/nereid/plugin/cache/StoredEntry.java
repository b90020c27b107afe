package dev.nereid.plugin.cache;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.cache.CacheEntry;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Reference-counted response in the local cache. The cache holds one reference, each reader another. Lock-free; safe
 * for use by any thread. Each user closes it once.
 *
 * <p>The count begins at one, for the cache, and reaches zero once: a reader takes part only while it is above.
 */
final class StoredEntry implements CacheEntry {
    private final TensorBuffer buffer;
    private final MemorySegment content;
    private final AtomicInteger references = new AtomicInteger(1);

    private StoredEntry(TensorBuffer buffer) {
        this.buffer = buffer;
        content = buffer.segment().asReadOnly();
    }

    /** Copies a response into memory of the cache. */
    static StoredEntry of(MemorySegment content, TensorMemory memory) {
        TensorBuffer buffer = memory.allocate(content.byteSize());
        buffer.segment().copyFrom(content);
        return new StoredEntry(buffer);
    }

    /** Adds a reference, unless the last one was released. */
    boolean tryRetain() {
        int before = references.get();
        while (before > 0) {
            if (references.compareAndSet(before, before + 1)) {
                return true;
            }
            before = references.get();
        }
        return false;
    }

    @Override
    public MemorySegment content() {
        return content;
    }

    @Override
    public void close() {
        if (references.decrementAndGet() == 0) {
            buffer.close();
        }
    }
}
