package dev.nereid.spi.cache;

import java.lang.foreign.MemorySegment;

/**
 * A cached response, leased to a reader. Owned by its receiver; safe for use by any thread. <em>Implemented by
 * caches.</em>
 *
 * @since 1.0
 */
public interface CacheEntry extends AutoCloseable {
    /**
     * Returns the bytes as they were inserted.
     *
     * @return native memory, aligned to 64 bytes, that any thread may read and none writes; valid until the close,
     *     whatever happens to the cache meanwhile
     */
    MemorySegment content();

    /** Ends the use of the bytes. Called exactly once, on any thread; must not block or throw. */
    @Override
    void close();
}
