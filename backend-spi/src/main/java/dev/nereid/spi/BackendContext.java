package dev.nereid.spi;

import java.nio.file.Path;
import java.util.Map;

/**
 * Services of the server for a backend. Valid from creation to close of the backend; safe for use by several threads.
 * <em>Implemented by the server.</em>
 */
public interface BackendContext {
    /**
     * Returns the settings given to the backend on the server's command line ({@code --backend-config}).
     *
     * @return settings of this backend over those for all backends, for instance {@code default-max-batch-size};
     *     immutable
     */
    Map<String, String> settings();

    /**
     * Returns the folder that the plugin was found in, for files that lie beside its jars.
     *
     * @return an existing folder; read only
     */
    Path pluginDirectory();

    /**
     * Returns a folder that the backend may write to, for instance to unpack native libraries. It is named by the
     * content of the plugin's jars, so that what was unpacked by an earlier start can be used again, and another
     * version of the plugin never sees it. Several servers may share it: move files into place atomically.
     *
     * @return an existing folder
     */
    Path cacheDirectory();

    /**
     * Returns the number of processors that the server may use.
     *
     * @return at least 1
     */
    int processors();

    /**
     * Returns the log of the backend.
     *
     * @return a logger named after the backend
     */
    System.Logger logger();
}
