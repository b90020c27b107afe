package dev.nereid.server.plugin;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.cache.CacheContext;
import dev.nereid.spi.cache.CacheProvider;
import dev.nereid.spi.cache.ResponseCache;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;

/** Loads the plugin of a response cache and creates the cache. Static functions only. */
public final class CachePlugin {
    private CachePlugin() {}

    /**
     * Creates a cache. Blocks while the plugin does.
     *
     * @param name the name of the cache, which is that of the plugin's directory or jar
     * @param settings the settings of the cache
     * @param directories the directories of plugins, in the order of their precedence; missing ones are skipped
     * @param spi the version of the SPI that the plugin is checked against
     * @return the cache, owned by the caller; its close ends the plugin too
     * @throws IllegalArgumentException if there is no such plugin, or if it is broken, or if it refuses the settings
     */
    public static ResponseCache open(
            String name, Map<String, String> settings, List<Path> directories, SpiVersion spi) {
        PluginSource source = find(name, directories)
                .orElseThrow(() -> new IllegalArgumentException("cache '" + name + "': unknown (expected: local, or the"
                        + " name of a plugin in one of " + directories + ")"));
        try {
            return open(source, new Context(Map.copyOf(settings), PluginLogger.ofCache(name)), spi);
        } catch (PluginException e) {
            throw new IllegalArgumentException("cache '" + name + "': " + e.reason(), e);
        }
    }

    private static Optional<PluginSource> find(String name, List<Path> directories) {
        return directories.stream()
                .filter(Files::isDirectory)
                .flatMap(directory -> new PluginDirectory(directory).scan().stream())
                .filter(source -> source.name().equals(name))
                .findFirst();
    }

    private static ResponseCache open(PluginSource source, CacheContext context, SpiVersion spi)
            throws PluginException {
        PluginManifest.check(source, spi, CacheProvider.class);
        PluginClassLoader loader = new PluginClassLoader(source, CacheProvider.class.getClassLoader());
        PluginBoundary boundary = new PluginBoundary(source.name(), loader);
        Runnable close = () -> boundary.close("the close of its jars", () -> close(loader));
        boolean created = false;
        try {
            CacheProvider provider = boundary.invoke("the creation of its provider", () -> instantiate(loader, source));
            ResponseCache cache = new IsolatedCacheProvider(provider, boundary, close).create(context);
            created = true;
            return cache;
        } catch (BackendException e) {
            throw new PluginException(String.valueOf(e.getMessage()), e);
        } finally {
            if (!created) {
                close.run();
            }
        }
    }

    private static CacheProvider instantiate(PluginClassLoader loader, PluginSource source) throws BackendException {
        List<CacheProvider> providers = ServiceLoader.load(CacheProvider.class, loader).stream()
                .filter(provider -> provider.type().getClassLoader() == loader) // not one that the JVM itself brings
                .map(ServiceLoader.Provider::get)
                .filter(provider -> provider.name().equals(source.name()))
                .toList();
        if (providers.size() != 1) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    providers.size() + " providers of its name (expected: one class that implements "
                            + CacheProvider.class.getName() + " and is named '" + source.name() + "')");
        }
        return providers.getFirst();
    }

    private static void close(PluginClassLoader loader) {
        try {
            loader.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Services of the server for a cache. Immutable. */
    private record Context(Map<String, String> settings, System.Logger logger) implements CacheContext {}
}
