package dev.nereid.server.cache;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import dev.nereid.api.InferenceException;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.spi.cache.ResponseCache;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Keeps responses in memory of its own, outside the heap, up to a number of bytes. Safe for use by any thread: Caffeine
 * is, and entries count their users.
 *
 * <p>What is dropped when it is full, Caffeine decides: what was used neither lately nor often (W-TinyLFU), so that a
 * row of calls that come once does not drive out those that come again. A hit hands out the kept bytes themselves; an
 * entry that is dropped while it is read is freed by its last reader, beyond the size for that long.
 */
final class LocalCache implements ResponseCache {
    /** Caffeine weighs in {@code int}: entries are weighed in pieces of this size, in bytes. */
    private static final int UNIT = 64;

    /** A part of the size may lie idle for entries to come. */
    private static final int IDLE_PART = 8;

    private final long units;
    private final TensorPool memory;
    private final Cache<CacheKey, StoredEntry> entries;

    /**
     * Creates an empty cache.
     *
     * @param size how much it keeps, in bytes; at least 1
     */
    LocalCache(long size) {
        units = Math.ceilDiv(size, UNIT);
        memory = new TensorPool(Long.MAX_VALUE, size / IDLE_PART);
        entries = Caffeine.newBuilder()
                .maximumWeight(units)
                .weigher((CacheKey key, StoredEntry entry) -> Math.toIntExact(units(entry.content())))
                // Under a lock of Caffeine's: an atomic count, and at its end the locks of the pool.
                .evictionListener((key, entry, cause) -> drop(entry))
                .executor(Runnable::run)
                .build();
    }

    /**
     * Creates an empty cache.
     *
     * @param settings {@value CacheOptions#SIZE} and nothing else
     * @throws IllegalArgumentException if they are wrong
     */
    static LocalCache of(Map<String, String> settings) {
        for (String name : settings.keySet()) {
            if (!name.equals(CacheOptions.SIZE)) {
                throw new IllegalArgumentException("cache 'local': " + name + ": unknown setting (expected: size)");
            }
        }
        String size = settings.getOrDefault(CacheOptions.SIZE, "");
        try {
            long bytes = Long.parseLong(size.strip());
            if (bytes >= 1) {
                return new LocalCache(bytes);
            }
        } catch (NumberFormatException e) {
            // told below
        }
        throw new IllegalArgumentException("cache 'local': size: '" + size
                + "' (expected: a number of bytes, 1 or more, as in local,size=1048576)");
    }

    @Override
    public void lookup(CacheKey key, LookupObserver observer) {
        StoredEntry entry = entries.getIfPresent(key);
        if (entry != null && entry.tryRetain()) {
            observer.found(entry);
        } else {
            observer.missing();
        }
    }

    @Override
    public void insert(CacheKey key, MemorySegment content, InsertObserver observer) {
        if (units(content) > Math.min(units, Integer.MAX_VALUE)) {
            observer.refused();
        } else if (entries.asMap().containsKey(key)) {
            observer.exists();
        } else {
            keep(key, content, observer);
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
        if (entries.asMap().putIfAbsent(key, entry) == null) {
            observer.stored();
        } else {
            entry.close();
            observer.exists();
        }
    }

    @Override
    public void close() {
        entries.asMap().keySet().forEach(key -> drop(entries.asMap().remove(key)));
        memory.close();
    }

    /** Returns how much memory is taken by what is kept or still read, in bytes. */
    long bytesInUse() {
        return memory.bytesInUse();
    }

    private static void drop(@Nullable StoredEntry entry) {
        if (entry != null) {
            entry.close();
        }
    }

    private static long units(MemorySegment content) {
        return Math.ceilDiv(content.byteSize(), UNIT);
    }
}
