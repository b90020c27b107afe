package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.plugin.jar.PluginClassLoader;
import dev.nereid.plugin.jar.PluginDigest;
import dev.nereid.plugin.jar.PluginDirectory;
import dev.nereid.plugin.jar.PluginException;
import dev.nereid.plugin.jar.PluginManifest;
import dev.nereid.plugin.jar.PluginSource;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.function.Function;

/**
 * A loaded plugin with one provider, named after the plugin's directory or jar. Immutable.
 *
 * @param provider the provider, to be called through the boundary
 * @param close closes the plugin, after all that its provider created
 */
record NamedPlugin<P>(P provider, PluginBoundary boundary, Runnable close) {
    /**
     * Finds a plugin by its name.
     *
     * @param directories the directories of plugins, in the order of their precedence; missing ones are skipped
     */
    static Optional<PluginSource> find(String name, List<Path> directories) {
        return directories.stream()
                .filter(Files::isDirectory)
                .flatMap(directory -> new PluginDirectory(directory).scan().stream())
                .filter(source -> source.name().equals(name))
                .findFirst();
    }

    /**
     * Loads a plugin, from copies of its jars. Blocks while it does.
     *
     * @param found the plugin where it was found
     * @param environment the version of the SPI that it is checked against, and the directory for the copies
     * @param name returns the name of a provider
     */
    static <P> NamedPlugin<P> load(
            PluginSource found, PluginEnvironment environment, Class<P> type, Function<P, String> name)
            throws PluginException {
        String digest = digest(found);
        PluginSource source =
                found.jars().isEmpty() ? found : environment.copies().copy(found, digest);
        PluginManifest.check(source, environment.spi(), Set.of(type));
        PluginClassLoader loader = PluginClassLoader.open(
                source, type.getClassLoader(), () -> environment.copies().hold(found, digest));
        PluginBoundary boundary = new PluginBoundary(source.name(), loader);
        Runnable close = () -> boundary.close("the close of its jars", () -> close(loader));
        boolean loaded = false;
        try {
            P provider = boundary.invoke("the creation of its provider", () -> instantiate(loader, source, type, name));
            loaded = true;
            return new NamedPlugin<>(provider, boundary, close);
        } catch (BackendException e) {
            throw new PluginException(String.valueOf(e.getMessage()), e);
        } finally {
            if (!loaded) {
                close.run();
            }
        }
    }

    private static String digest(PluginSource source) throws PluginException {
        try {
            return PluginDigest.hash(source.jars());
        } catch (IOException e) {
            PluginManifest.requireReadable(source);
            throw new PluginException("its jars cannot be read: " + e.getMessage(), e);
        }
    }

    private static <P> P instantiate(
            PluginClassLoader loader, PluginSource source, Class<P> type, Function<P, String> name) {
        List<P> providers = ServiceLoader.load(type, loader).stream()
                .filter(provider -> provider.type().getClassLoader() == loader) // not one that the JVM itself brings
                .map(ServiceLoader.Provider::get)
                .filter(provider -> source.name().equals(name.apply(provider)))
                .toList();
        if (providers.size() != 1) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    providers.size() + " providers of its name (expected: one class that implements " + type.getName()
                            + " and is named '" + source.name() + "')");
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
}
