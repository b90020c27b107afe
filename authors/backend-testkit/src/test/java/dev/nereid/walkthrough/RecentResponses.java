package dev.nereid.walkthrough;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.cache.CacheContext;
import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.CacheProvider;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.spi.cache.ResponseCache;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;

/** Keeps responses in memory that the garbage collector frees; evicts the least recently used ones. */
public final class RecentResponses implements CacheProvider {
    @Override
    public String name() {
        return "recent";
    }

    @Override
    public ResponseCache create(CacheContext context) {
        String size = context.settings().getOrDefault("size", "");
        try {
            return new Cache(Long.parseLong(size));
        } catch (NumberFormatException e) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT, "size: '" + size + "' (expected: a number of bytes)", e);
        }
    }

    /** The cache. Guarded by its lock, under which no observer is called. */
    private static final class Cache implements ResponseCache {
        private final long capacity;
        private final ReentrantLock lock = new ReentrantLock();
        private final Map<CacheKey, MemorySegment> responses = new LinkedHashMap<>(16, 0.75f, true);
        private long bytes;

        Cache(long capacity) {
            this.capacity = capacity;
        }

        @Override
        public void lookup(CacheKey key, LookupObserver observer) {
            Optional<MemorySegment> found = find(key);
            if (found.isPresent()) {
                observer.found(new Entry(found.get()));
            } else {
                observer.missing();
            }
        }

        @Override
        public void insert(CacheKey key, MemorySegment content, InsertObserver observer) {
            if (content.byteSize() > capacity) {
                observer.refused();
            } else if (find(key).isPresent()) {
                observer.exists();
            } else {
                MemorySegment copy = Arena.ofAuto().allocate(content.byteSize(), 64);
                add(key, copy.copyFrom(content));
                observer.stored();
            }
        }

        private Optional<MemorySegment> find(CacheKey key) {
            lock.lock();
            try {
                return Optional.ofNullable(responses.get(key));
            } finally {
                lock.unlock();
            }
        }

        private void add(CacheKey key, MemorySegment content) {
            lock.lock();
            try {
                MemorySegment replaced = responses.put(key, content);
                bytes += content.byteSize() - (replaced == null ? 0 : replaced.byteSize());
                Iterator<MemorySegment> eldest = responses.values().iterator();
                while (bytes > capacity) {
                    bytes -= eldest.next().byteSize();
                    eldest.remove();
                }
            } finally {
                lock.unlock();
            }
        }

        @Override
        public void close() {
            // Entries that are still read keep their memory reachable.
        }
    }

    /** A response in use. */
    private record Entry(MemorySegment content) implements CacheEntry {
        @Override
        public void close() {
            // The garbage collector frees the memory when neither cache nor entry refers to it.
        }
    }
}
