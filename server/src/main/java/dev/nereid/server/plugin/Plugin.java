package dev.nereid.server.plugin;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.ServiceLoader;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A loaded plugin with its class loader and its providers. Owns the plugin's class loader. Immutable. */
final class Plugin implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Plugin.class);

    private final PluginSource source;
    private final PluginClassLoader loader;
    private final List<IsolatedBackendProvider> providers;

    private Plugin(PluginSource source, PluginClassLoader loader, List<IsolatedBackendProvider> providers) {
        this.source = source;
        this.loader = loader;
        this.providers = List.copyOf(providers);
    }

    /** Loads a plugin as a whole, or not at all. */
    static Plugin open(PluginSource source, SpiVersion spi) throws PluginException {
        PluginManifest.check(source, spi, BackendProvider.class);
        PluginClassLoader loader = new PluginClassLoader(source, BackendProvider.class.getClassLoader());
        Plugin plugin = null;
        try {
            plugin = new Plugin(source, loader, providers(source, loader));
            return plugin;
        } catch (BackendException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            throw new PluginException(PluginBoundary.describe(cause), e);
        } finally {
            if (plugin == null) {
                close(source, loader);
            }
        }
    }

    PluginSource source() {
        return source;
    }

    List<IsolatedBackendProvider> providers() {
        return providers;
    }

    /** Closes the jars. Native libraries that the plugin loaded stay for the life of the process. */
    @Override
    public void close() {
        close(source, loader);
    }

    private static List<IsolatedBackendProvider> providers(PluginSource source, PluginClassLoader loader)
            throws BackendException, PluginException {
        PluginBoundary boundary = new PluginBoundary(source.name(), loader);
        List<BackendProvider> created = boundary.invoke("the creation of its providers", () -> instantiate(loader));
        if (created.isEmpty()) {
            throw new PluginException("no provider: " + PluginManifest.serviceFile(BackendProvider.class)
                    + " names no class (expected: the name of a class that implements "
                    + BackendProvider.class.getName() + ")");
        }
        List<IsolatedBackendProvider> entries = new ArrayList<>();
        Set<String> names = new HashSet<>();
        for (BackendProvider provider : created) {
            IsolatedBackendProvider entry = IsolatedBackendProvider.of(provider, boundary);
            if (!names.add(entry.name())) {
                throw new PluginException("backend name: '" + entry.name()
                        + "' twice in one plugin (expected: a name for each provider)");
            }
            entries.add(entry);
        }
        return entries;
    }

    private static List<BackendProvider> instantiate(PluginClassLoader loader) {
        return ServiceLoader.load(BackendProvider.class, loader).stream()
                .filter(provider -> provider.type().getClassLoader() == loader) // not one that the JVM itself brings
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    private static void close(PluginSource source, PluginClassLoader loader) {
        try {
            loader.close();
        } catch (IOException e) {
            LOG.atWarn().addKeyValue("plugin", source.name()).setCause(e).log("jars of plugin could not be closed");
        }
    }
}
