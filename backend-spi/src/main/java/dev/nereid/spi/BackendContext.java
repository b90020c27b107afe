package dev.nereid.spi;

import java.nio.file.Path;
import java.util.Map;

/**
 * Services of the server for a backend. Valid from creation to close of the backend; safe for use by several threads.
 * <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
public interface BackendContext {
    /**
     * Returns the name of the backend in configurations of models.
     *
     * @return the name of the provider, or that which the provider has given to a directory that it
     *     {@linkplain BackendProvider#claims claims}
     */
    String name();

    /**
     * Returns the settings of the backend from the server's command line ({@code --backend-config}). Each read declares
     * the name: one for this backend that is not read until its first model is loaded, and resembles a read one, is logged
     * as misspelt.
     *
     * @return settings of this backend over those for all backends, for instance {@code default-max-batch-size}; all are
     *     texts, and errors about one begin with {@code --backend-config=B,name: } for the backend B
     */
    Parameters settings();

    /**
     * Returns the directory of the plugin, for files beside its jars.
     *
     * @return an existing directory; read only; that of the backend if its provider
     *     {@linkplain BackendProvider#claims claims} one
     */
    Path pluginDirectory();

    /**
     * Returns a directory to which the backend may write, for instance to unpack native libraries. It is named by the
     * content of the plugin's jars, so that a later start can reuse unpacked files, and another version of the plugin
     * never sees them. Several servers may share it: move files into place atomically.
     *
     * @return an existing directory
     */
    Path cacheDirectory();

    /**
     * Returns the number of processors that the server may use.
     *
     * @return at least 1
     */
    int processors();

    /**
     * Returns the environment variables for processes that the backend starts. They are the variables of the server
     * without its secrets, such as credentials of storages: {@link ProcessBuilder#environment} has all, and is cleared
     * first.
     *
     * @return the variables by name; immutable; empty for a server in a program that passes none
     */
    default Map<String, String> environment() {
        return Map.of();
    }

    /**
     * Returns the log of the backend.
     *
     * @return a logger named after the backend
     */
    System.Logger logger();

    /**
     * Returns the custom metrics of the backend, for what concerns all of its models. The server adds no
     * labels, so that one name is the same metric for all models.
     *
     * @return the metrics, the same at every call; counted and not published by a server without custom metrics
     */
    @Incubating
    default Metrics metrics() {
        return Metrics.unpublished(logger());
    }
}
