package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.cache.CacheContext;
import dev.nereid.spi.cache.CacheProvider;
import dev.nereid.spi.cache.ResponseCache;

/** A plugin's cache provider behind its boundary. Immutable. */
final class IsolatedCacheProvider implements CacheProvider {
    private final CacheProvider provider;
    private final PluginBoundary boundary;
    private final Runnable closePlugin;
    private final String name;

    /**
     * Wraps a provider and reads its name.
     *
     * @param closePlugin closes the plugin, after the cache that the provider creates
     */
    IsolatedCacheProvider(CacheProvider provider, PluginBoundary boundary, Runnable closePlugin) {
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
