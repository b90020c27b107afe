package dev.nereid.spi.cache;

import java.lang.foreign.MemorySegment;

/**
 * Stores responses as opaque bytes under keys. Safe for use by any thread. <em>Implemented by caches.</em>
 *
 * <p>The methods are called by event loops and by threads of instances, many at a time: they never block, and leave
 * what takes longer than a few microseconds to threads of the cache. An observer is told exactly once, on any thread,
 * perhaps before the method returns, and never under a lock of the cache. A cache that is broken, or cannot be reached,
 * tells {@code failed}, within a time that its settings bound: the call waits for that, and is then executed as without
 * a cache. Whatever a method throws counts as a failure.
 */
public interface ResponseCache extends AutoCloseable {
    /**
     * Looks for a response.
     *
     * @param key the key of the call
     * @param observer who is told; exactly once
     */
    void lookup(CacheKey key, LookupObserver observer);

    /**
     * Keeps a response, unless there is one of its key.
     *
     * @param key the key of the call
     * @param content the response, at least one byte, in native memory; read only, and valid until the observer is told
     * @param observer who is told; exactly once
     */
    void insert(CacheKey key, MemorySegment content, InsertObserver observer);

    /**
     * Ends the cache: tells the observers that still wait, and frees what it holds, but for entries that are still
     * read, which stay valid until their own close. Called once, when nobody looks up or inserts any more; may block
     * for a few seconds. What it throws is logged.
     */
    @Override
    void close();
}
