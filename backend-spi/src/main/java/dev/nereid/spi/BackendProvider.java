package dev.nereid.spi;

import java.nio.file.Path;
import java.util.Optional;
import java.util.Set;

/**
 * The entry point of a plugin: names a backend and creates it. <em>Implemented by backends.</em>
 *
 * <p>The server finds it with {@link java.util.ServiceLoader}: the plugin's jar names the class in
 * {@code META-INF/services/dev.nereid.spi.BackendProvider}, and the class has a public constructor without arguments.
 * A plugin holds one or more providers. The constructor and the methods must be cheap: they run at the start of the
 * server for every plugin, one after another on a control thread, whether a model needs the backend or not.
 *
 * @since 1.0
 */
public interface BackendProvider {
    /**
     * Returns the name of this backend in a model's configuration ({@code backend: "…"}).
     *
     * @return the name: lower-case letters, digits, {@code _} and {@code -}; the same at every call
     */
    String name();

    /**
     * Returns the legacy {@code platform} names that mean this backend as well.
     *
     * @return the names, for instance {@code onnxruntime_onnx}; empty by default
     */
    default Set<String> platforms() {
        return Set.of();
    }

    /**
     * Returns the name of another backend that this provider creates from a directory without jars. For instance, a backend
     * that runs programs of another language makes each directory with such a program a backend.
     *
     * <p>The server calls this for each unclaimed directory without jars in the directories of
     * {@code --backend-directory}: when it finds the directory, when a file in it changes, and when a plugin is added
     * or replaced. Called on control threads, by several at a time. The first provider that returns a name creates that
     * backend, by {@link #create} with a context of that name and directory, and with the settings of that name. A name
     * that another backend has is refused; so is a directory for which a provider throws, unless another one claims it.
     *
     * @param directory an existing directory; read only, and perhaps one of another program
     * @return the name: letters, digits, {@code .}, {@code _} and {@code -}, commonly the name of the directory; empty by
     *     default, for a directory that is no backend of this provider
     */
    default Optional<String> claims(Path directory) {
        return Optional.empty();
    }

    /**
     * Returns the reason why the backend cannot work on this machine, if any. An example is a driver or a library that
     * is missing.
     *
     * <p>The reason is shown in the start-up table, and every load of a model that needs the backend fails with it.
     *
     * @return one line of text, or empty if the backend can be created
     */
    default Optional<String> unavailable() {
        return Optional.empty();
    }

    /**
     * Creates the backend. Called on a control thread that may block, before the first model that needs it is loaded;
     * again only after it failed, or after the backend was closed.
     *
     * @param context the services of the server for the backend, valid until the backend is closed
     * @return the backend, owned and later closed by the server
     * @throws BackendException if the backend cannot be used; the load of the model that requires it fails with
     *     this error, and the next load tries again
     */
    Backend create(BackendContext context);
}
