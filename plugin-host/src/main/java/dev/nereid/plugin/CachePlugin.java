package dev.nereid.plugin;

import dev.nereid.plugin.jar.PluginException;
import dev.nereid.plugin.jar.PluginSource;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.cache.CacheContext;
import dev.nereid.spi.cache.CacheProvider;
import dev.nereid.spi.cache.ResponseCache;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** Loads the plugin of a response cache and creates the cache. Static functions only. */
public final class CachePlugin {
    private CachePlugin() {}

    /**
     * Creates a cache. Blocks while the plugin does.
     *
     * @param name the name of the cache, equal to the name of the plugin's directory or jar
     * @param variables the environment variables that the plugin sees
     * @param directories the directories of plugins, in the order of their precedence; missing ones are skipped
     * @param environment the version of the SPI that the plugin is checked against, and the directory for copies of its
     *     jars
     * @return the cache, owned by the caller; its close ends the plugin too
     * @throws IllegalArgumentException if there is no such plugin, or if it is broken, or if it refuses the settings
     */
    public static ResponseCache open(
            String name,
            Map<String, String> settings,
            Map<String, String> variables,
            List<Path> directories,
            PluginEnvironment environment) {
        PluginSource source = NamedPlugin.find(name, directories)
                .orElseThrow(() -> new IllegalArgumentException("cache '" + name + "': unknown (expected: local, or the"
                        + " name of a plugin in one of " + directories + ")"));
        PluginLogger logger = PluginLogger.ofCache(name);
        try {
            return open(
                    source,
                    new Context(Map.copyOf(settings), Map.copyOf(variables), logger, Metrics.unpublished(logger)),
                    environment);
        } catch (PluginException e) {
            throw new IllegalArgumentException("cache '" + name + "': " + e.reason(), e);
        }
    }

    private static ResponseCache open(PluginSource source, CacheContext context, PluginEnvironment environment)
            throws PluginException {
        NamedPlugin<CacheProvider> plugin =
                NamedPlugin.load(source, environment, CacheProvider.class, CacheProvider::name);
        boolean created = false;
        try {
            ResponseCache cache =
                    new IsolatedCache.Provider(plugin.provider(), plugin.boundary(), plugin.close()).create(context);
            created = true;
            return cache;
        } catch (BackendException e) {
            throw new PluginException(String.valueOf(e.getMessage()), e);
        } finally {
            if (!created) {
                plugin.close().run();
            }
        }
    }

    /** Services of the server for a cache. Immutable. */
    private record Context(
            Map<String, String> settings, Map<String, String> environment, System.Logger logger, Metrics metrics)
            implements CacheContext {
        /** Never shows the settings and the environment. */
        @Override
        public String toString() {
            return "cache";
        }
    }
}
