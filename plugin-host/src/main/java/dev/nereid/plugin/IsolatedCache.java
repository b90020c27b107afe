package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.cache.CacheContext;
import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.CacheProvider;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.spi.cache.ResponseCache;
import java.lang.foreign.MemorySegment;

/**
 * Forwards to a plugin's response cache through the plugin boundary. Owns the plugin. Immutable; safe for use by any
 * thread.
 *
 * <p>Exceptions of a lookup or an insert pass unchanged to the scheduler, which treats them as a failure of the cache.
 */
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
        ClassLoader before = boundary.enter();
        try {
            cache.lookup(key, new IsolatingObserver(observer));
        } finally {
            PluginBoundary.exit(before);
        }
    }

    @Override
    public void insert(CacheKey key, MemorySegment content, InsertObserver observer) {
        ClassLoader before = boundary.enter();
        try {
            cache.insert(key, content, observer);
        } finally {
            PluginBoundary.exit(before);
        }
    }

    @Override
    public void close() {
        boundary.close("ResponseCache.close", cache::close);
        closePlugin.run();
    }

    /** Passes on the result of a lookup. The entry of the plugin is called through the boundary. */
    private final class IsolatingObserver implements LookupObserver {
        private final LookupObserver observer;

        IsolatingObserver(LookupObserver observer) {
            this.observer = observer;
        }

        @Override
        @SuppressWarnings("NullAway") // A plugin is not compiled with our checks: it may pass null.
        public void found(CacheEntry entry) {
            if (entry == null) {
                observer.failed("found: null (expected: an entry)");
            } else {
                observer.found(new Entry(entry, boundary));
            }
        }

        @Override
        public void missing() {
            observer.missing();
        }

        @Override
        public void failed(String reason) {
            observer.failed(reason);
        }
    }

    /**
     * A plugin's cache entry behind its boundary. Immutable; safe for use by any thread.
     *
     * <p>Exceptions of the entry pass unchanged: the scheduler, which reads the entry, takes them for failures of the
     * cache.
     */
    static final class Entry implements CacheEntry {
        private final CacheEntry entry;
        private final PluginBoundary boundary;

        Entry(CacheEntry entry, PluginBoundary boundary) {
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

    /** A plugin's cache provider behind its boundary. Immutable. */
    static final class Provider implements CacheProvider {
        private final CacheProvider provider;
        private final PluginBoundary boundary;
        private final Runnable closePlugin;
        private final String name;

        /**
         * Wraps a provider and reads its name.
         *
         * @param closePlugin closes the plugin, after the cache that the provider creates
         */
        Provider(CacheProvider provider, PluginBoundary boundary, Runnable closePlugin) {
            this.provider = provider;
            this.boundary = boundary;
            this.closePlugin = closePlugin;
            name = boundary.invoke("CacheProvider.name", provider::name);
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public ResponseCache create(CacheContext context) {
            return new IsolatedCache(
                    boundary.invoke("CacheProvider.create", () -> provider.create(context)), boundary, closePlugin);
        }
    }
}
