package dev.nereid.server.plugin;

import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.spi.cache.ResponseCache;
import java.lang.foreign.MemorySegment;

/** A plugin's cache behind its boundary. Owns the plugin. Immutable; safe for use by any thread. */
final class IsolatedCache implements ResponseCache {
    private final ResponseCache cache;
    private final PluginBoundary boundary;
    private final Runnable closePlugin;

    IsolatedCache(ResponseCache cache, PluginBoundary boundary, Runnable closePlugin) {
        this.cache = cache;
        this.boundary = boundary;
        this.closePlugin = closePlugin;
    }

    @Override
    public void lookup(CacheKey key, LookupObserver observer) {
        inPlugin(() -> cache.lookup(key, observer));
    }

    @Override
    public void insert(CacheKey key, MemorySegment content, InsertObserver observer) {
        inPlugin(() -> cache.insert(key, content, observer));
    }

    /** What is thrown passes as it is: the scheduler, which calls, takes it for a failure of the cache. */
    private void inPlugin(Runnable call) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(boundary.loader());
        try {
            call.run();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    @Override
    public void close() {
        boundary.close("ResponseCache.close", cache::close);
        closePlugin.run();
    }
}
