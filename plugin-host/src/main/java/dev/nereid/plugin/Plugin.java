package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.plugin.jar.PluginClassLoader;
import dev.nereid.plugin.jar.PluginException;
import dev.nereid.plugin.jar.PluginManifest;
import dev.nereid.plugin.jar.PluginSource;
import dev.nereid.plugin.jar.SpiVersion;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.agent.RepositoryAgentProvider;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A loaded plugin with its class loader and its providers. Owns the class loader, unless the plugin is a class of the
 * program. Immutable.
 */
final class Plugin implements AutoCloseable {
    /** The provider types that the service files of a plugin name, at least one of these. */
    static final Set<Class<?>> PROVIDERS = Set.of(BackendProvider.class, RepositoryAgentProvider.class);

    private static final Logger LOG = LoggerFactory.getLogger(Plugin.class);

    private final PluginSource source;
    private final Closeable loader;
    private final List<IsolatedBackend.Provider> providers;
    private final List<IsolatedAgent.Provider> agents;

    Plugin(
            PluginSource source,
            Closeable loader,
            List<IsolatedBackend.Provider> providers,
            List<IsolatedAgent.Provider> agents) {
        this.source = source;
        this.loader = loader;
        this.providers = List.copyOf(providers);
        this.agents = List.copyOf(agents);
    }

    /**
     * Loads a plugin as a whole, or not at all.
     *
     * @param hold keeps its jars for a library that the process shares
     */
    static Plugin open(PluginSource source, SpiVersion spi, Supplier<Object> hold) throws PluginException {
        PluginManifest.check(source, spi, PROVIDERS);
        PluginClassLoader loader = PluginClassLoader.open(source, BackendProvider.class.getClassLoader(), hold);
        Plugin plugin = null;
        try {
            plugin = load(source, loader);
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

    /** Makes a plugin of a class of the program. The program owns the class loader. */
    static Plugin of(PluginSource source, BackendProvider provider) throws PluginException {
        PluginBoundary boundary =
                new PluginBoundary(source.name(), provider.getClass().getClassLoader());
        try {
            return new Plugin(source, () -> {}, List.of(IsolatedBackend.Provider.of(provider, boundary)), List.of());
        } catch (BackendException e) {
            throw new PluginException(String.valueOf(e.getMessage()), e);
        }
    }

    PluginSource source() {
        return source;
    }

    List<IsolatedBackend.Provider> providers() {
        return providers;
    }

    List<IsolatedAgent.Provider> agents() {
        return agents;
    }

    IsolatedBackend.Provider provider(String backend) {
        return providers.stream()
                .filter(provider -> provider.name().equals(backend))
                .findFirst()
                .orElseThrow(() -> missing("backend", backend));
    }

    IsolatedAgent.Provider agent(String name) {
        return agents.stream()
                .filter(provider -> provider.name().equals(name))
                .findFirst()
                .orElseThrow(() -> missing("repository agent", name));
    }

    private BackendException missing(String kind, String name) {
        return new BackendException(
                ErrorCode.UNAVAILABLE,
                "plugin '" + source.name() + "' has no " + kind + " '" + name
                        + "' any more (expected: the jars that the server found)");
    }

    /** Closes the jars. Native libraries that the plugin loaded stay for the life of the process. */
    @Override
    public void close() {
        close(source, loader);
    }

    private static Plugin load(PluginSource source, PluginClassLoader loader) throws PluginException {
        PluginBoundary boundary = new PluginBoundary(source.name(), loader);
        List<BackendProvider> backends =
                boundary.invoke("the creation of its providers", () -> instantiate(loader, BackendProvider.class));
        List<RepositoryAgentProvider> agents = boundary.invoke(
                "the creation of its providers", () -> instantiate(loader, RepositoryAgentProvider.class));
        if (backends.isEmpty() && agents.isEmpty()) {
            throw new PluginException("no provider: " + PluginManifest.serviceFile(BackendProvider.class)
                    + " names no class (expected: the name of a class that implements "
                    + BackendProvider.class.getName() + ")");
        }
        List<IsolatedBackend.Provider> isolatedBackends = new ArrayList<>();
        for (BackendProvider provider : backends) {
            isolatedBackends.add(IsolatedBackend.Provider.of(provider, boundary));
        }
        List<IsolatedAgent.Provider> isolatedAgents = new ArrayList<>();
        for (RepositoryAgentProvider provider : agents) {
            isolatedAgents.add(IsolatedAgent.Provider.of(provider, boundary));
        }
        requireUnique("backend", isolatedBackends.stream().map(IsolatedBackend.Provider::name));
        requireUnique("repository agent", isolatedAgents.stream().map(IsolatedAgent.Provider::name));
        return new Plugin(source, loader, isolatedBackends, isolatedAgents);
    }

    private static void requireUnique(String kind, Stream<String> names) throws PluginException {
        Set<String> seen = new HashSet<>();
        Optional<String> twice = names.filter(name -> !seen.add(name)).findFirst();
        if (twice.isPresent()) {
            throw new PluginException(
                    kind + " name: '" + twice.get() + "' twice in one plugin (expected: a name for each provider)");
        }
    }

    private static <T> List<T> instantiate(PluginClassLoader loader, Class<T> type) {
        return ServiceLoader.load(type, loader).stream()
                .filter(provider -> provider.type().getClassLoader() == loader) // not one that the JVM itself brings
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    private static void close(PluginSource source, Closeable loader) {
        try {
            loader.close();
        } catch (IOException e) {
            LOG.atWarn()
                    .addKeyValue("plugin", source.name())
                    .setCause(e)
                    .log("jars of plugin could not be closed (plugin '{}')", source.name());
        }
    }
}
