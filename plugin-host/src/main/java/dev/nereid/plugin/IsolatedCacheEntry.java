package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.cache.CacheEntry;
import java.lang.foreign.MemorySegment;

/**
 * A plugin's cache entry behind its boundary. Immutable; safe for use by any thread.
 *
 * <p>Exceptions of the entry pass unchanged: the scheduler, which reads the entry, takes them for failures of the
 * cache.
 */
final class IsolatedCacheEntry implements CacheEntry {
    private final CacheEntry entry;
    private final PluginBoundary boundary;

    IsolatedCacheEntry(CacheEntry entry, PluginBoundary boundary) {
        this.entry = entry;
        this.boundary = boundary;
    }

    @Override
    public MemorySegment content() {
        ClassLoader before = boundary.enter();
        try {
            return entry.content();
        } finally {
            PluginBoundary.exit(before);
        }
    }

    @Override
    public void close() {
        ClassLoader before = boundary.enter();
        try {
            entry.close();
        } finally {
            PluginBoundary.exit(before);
        }
    }
}
