package dev.nereid.spi.cache;

import java.lang.foreign.MemorySegment;

/**
 * Stores responses as opaque bytes under keys. Safe for use by any thread. <em>Implemented by caches.</em>
 *
 * <p>The methods are called by event loops and by threads of instances, many at a time: they never block, and run
 * work of more than a few microseconds on threads of the cache. An observer is notified exactly once, on any thread,
 * perhaps before the method returns, and never under a lock of the cache. A cache that is broken or unreachable reports
 * {@code failed}, within a timeout of its settings: the request waits for that, and is then executed as without a cache.
 * Any exception of a method counts as a failure.
 *
 * @since 1.0
 */
public interface ResponseCache extends AutoCloseable {
    /**
     * Looks up a response.
     *
     * @param key the key of the request
     * @param observer receives the outcome, exactly once
     */
    void lookup(CacheKey key, LookupObserver observer);

    /**
     * Stores a response, unless there is one of its key.
     *
     * @param key the key of the request
     * @param content the response, at least one byte, in native memory; read only, and valid until the observer is notified
     * @param observer receives the outcome, exactly once
     */
    void insert(CacheKey key, MemorySegment content, InsertObserver observer);

    /**
     * Closes the cache and frees its resources. Observers that still wait are notified; entries that are still read
     * stay valid until their own close. Called once, after the last lookup and insert; may block for a few seconds. Its
     * exceptions are logged.
     */
    @Override
    void close();
}
