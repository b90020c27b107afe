package dev.nereid.plugin.cache;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.spi.cache.ResponseCache;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Least-recently-used response cache in native memory, bounded by bytes. Safe for use by any thread: one lock guards
 * the order of use, held while entries are found, inserted and removed, never while bytes are copied or freed; and
 * entries count their users.
 *
 * <p>A full cache evicts the entries that were not looked up for longest (LRU), until the new one fits; the new one is
 * always stored, so that a repeated request finds its response. A hit returns the stored bytes themselves.
 *
 * <p>The size covers the stored entries, each rounded up to 64 bytes. Beyond it are what the memory adds to a piece; an
 * entry that is about to be inserted; an evicted one that is still read; and some 200 bytes of the heap for each entry.
 */
public final class LocalCache implements ResponseCache {
    /** The unit of an entry's size, in bytes. Sizes are rounded up, so that the smallest entry has a weight, too. */
    private static final int UNIT = 64;

    private final long maxUnits;
    private final TensorMemory memory;
    private final ReentrantLock lock = new ReentrantLock();

    /** In the order in which they were used, the last one last. */
    @GuardedBy("lock")
    private final Map<CacheKey, StoredEntry> entries = new LinkedHashMap<>(16, 0.75f, true);

    @GuardedBy("lock")
    private long units;

    @GuardedBy("lock")
    private boolean closed;

    /**
     * Creates an empty cache.
     *
     * @param size the capacity in bytes; at least 1
     * @param memory the memory of the entries, which the caller closes after the cache
     */
    public LocalCache(long size, TensorMemory memory) {
        maxUnits = Math.ceilDiv(size, UNIT);
        this.memory = memory;
    }

    /**
     * Returns the capacity of a cache.
     *
     * @param settings {@value CacheOptions#SIZE} and nothing else
     * @return bytes; at least 1
     * @throws IllegalArgumentException if they are wrong
     */
    public static long size(Map<String, String> settings) {
        for (String name : settings.keySet()) {
            if (!name.equals(CacheOptions.SIZE)) {
                throw new IllegalArgumentException("cache 'local': " + name + ": unknown setting (expected: size)");
            }
        }
        String size = settings.getOrDefault(CacheOptions.SIZE, "");
        try {
            long bytes = Long.parseLong(size.strip());
            if (bytes >= 1) {
                return bytes;
            }
        } catch (NumberFormatException e) {
            // reported below
        }
        throw new IllegalArgumentException("cache 'local': size: '" + size
                + "' (expected: a number of bytes, 1 or more, as in local,size=1048576)");
    }

    @Override
    public void lookup(CacheKey key, LookupObserver observer) {
        StoredEntry found = find(key);
        if (found == null) {
            observer.missing();
        } else {
            observer.found(found);
        }
    }

    /** Finds an entry, which is the last used from then on. The caller is one of its users. */
    private @Nullable StoredEntry find(CacheKey key) {
        lock.lock();
        try {
            StoredEntry entry = entries.get(key);
            return entry != null && entry.tryRetain() ? entry : null;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void insert(CacheKey key, MemorySegment content, InsertObserver observer) {
        if (units(content) > maxUnits) {
            observer.refused();
        } else if (has(key)) {
            observer.exists();
        } else {
            keep(key, content, observer);
        }
    }

    private boolean has(CacheKey key) {
        lock.lock();
        try {
            return entries.containsKey(key);
        } finally {
            lock.unlock();
        }
    }

    private void keep(CacheKey key, MemorySegment content, InsertObserver observer) {
        StoredEntry entry;
        try {
            entry = StoredEntry.of(content, memory);
        } catch (InferenceException e) {
            observer.failed(e.publicMessage());
            return;
        }
        List<StoredEntry> evicted = new ArrayList<>();
        boolean stored = put(key, entry, evicted);
        if (!stored) {
            evicted.add(entry);
        }
        evicted.forEach(StoredEntry::close);
        if (stored) {
            observer.stored();
        } else if (has(key)) {
            observer.exists();
        } else {
            observer.refused();
        }
    }

    /**
     * Stores an entry, unless the key has one, or the cache is closed.
     *
     * @param evicted receives the entries that were removed for it, to be closed by the caller
     */
    private boolean put(CacheKey key, StoredEntry entry, List<StoredEntry> evicted) {
        lock.lock();
        try {
            if (closed || entries.containsKey(key)) {
                return false;
            }
            long room = maxUnits - units(entry.content());
            for (Iterator<StoredEntry> oldest = entries.values().iterator(); units > room; ) {
                StoredEntry next = oldest.next();
                oldest.remove();
                units -= units(next.content());
                evicted.add(next);
            }
            entries.put(key, entry);
            units += units(entry.content());
            return true;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void close() {
        List<StoredEntry> evicted;
        lock.lock();
        try {
            closed = true;
            evicted = List.copyOf(entries.values());
            entries.clear();
            units = 0;
        } finally {
            lock.unlock();
        }
        evicted.forEach(StoredEntry::close);
    }

    /** Returns the memory of entries that are stored or still read, in bytes. */
    long bytesInUse() {
        return memory.bytesInUse();
    }

    private static long units(MemorySegment content) {
        return Math.max(1, Math.ceilDiv(content.byteSize(), UNIT));
    }

    /**
     * Reference-counted response in the local cache. The cache holds one reference, each reader another. Lock-free; safe
     * for use by any thread. Each user closes it once.
     *
     * <p>The count begins at one, for the cache, and reaches zero once: a reader takes part only while it is above.
     */
    static final class StoredEntry implements CacheEntry {
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
}
