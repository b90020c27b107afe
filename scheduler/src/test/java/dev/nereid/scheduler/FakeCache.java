package dev.nereid.scheduler;

import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.spi.cache.ResponseCache;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A cache without limits, which can be set to fail or to defer its results. Confined to the test's thread. */
public final class FakeCache implements ResponseCache {
    public final Map<CacheKey, MemorySegment> entries = new HashMap<>();
    public final Map<CacheKey, LookupObserver> lookups = new LinkedHashMap<>();
    public final Map<CacheKey, InsertObserver> inserts = new LinkedHashMap<>();

    public boolean waits;
    public boolean fails;
    public boolean refuses;

    /** The failure that an entry throws in place of its content, and then again when it is closed. */
    @Nullable
    public Throwable trouble;

    public int open;
    int hits;
    int misses;
    int stored;

    @Override
    public void lookup(CacheKey key, LookupObserver observer) {
        if (fails) {
            throw new IllegalStateException("cache is broken");
        }
        lookups.put(key, observer);
        if (!waits) {
            respond(key);
        }
    }

    /** Reports the result of a lookup, which may be reported before. */
    void respond(CacheKey key) {
        LookupObserver observer = lookups.get(key);
        MemorySegment content = entries.get(key);
        if (content == null) {
            misses++;
            observer.missing();
        } else {
            open++;
            hits++;
            observer.found(new CacheEntry() {
                @Override
                public MemorySegment content() {
                    fail();
                    return content;
                }

                @Override
                public void close() {
                    open--;
                    fail();
                }

                private void fail() {
                    if (trouble instanceof Error error) {
                        throw error;
                    }
                    if (trouble instanceof RuntimeException exception) {
                        throw exception;
                    }
                }
            });
        }
    }

    /** Reports the result of the only deferred lookup. */
    public void respondOnly() {
        respond(lookups.keySet().iterator().next());
    }

    @Override
    public void insert(CacheKey key, MemorySegment content, InsertObserver observer) {
        if (fails) {
            throw new IllegalStateException("cache is broken");
        }
        inserts.put(key, observer);
        if (refuses) {
            observer.refused();
        } else if (entries.containsKey(key)) {
            observer.exists();
        } else {
            stored++;
            entries.put(
                    key,
                    Arena.ofAuto()
                            .allocate(content.byteSize(), 64)
                            .copyFrom(content)
                            .asReadOnly());
            if (!waits) {
                observer.stored();
            }
        }
    }

    @Override
    public void close() {}
}
