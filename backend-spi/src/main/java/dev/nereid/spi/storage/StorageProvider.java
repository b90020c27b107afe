package dev.nereid.spi.storage;

import dev.nereid.spi.BackendException;

/**
 * The entry point of a plugin that brings a remote storage. <em>Implemented by storages.</em>
 *
 * <p>The server finds it with {@link java.util.ServiceLoader}: the plugin's jar names the class in
 * {@code META-INF/services/dev.nereid.spi.storage.StorageProvider}, its manifest has the entry
 * {@code Backend-Spi-Version}, and the class has a public constructor without arguments. A plugin is loaded only if a
 * model repository of the command line has its scheme.
 *
 * @since 1.0
 */
public interface StorageProvider {
    /**
     * Returns the scheme of the URLs that this storage serves: {@code s3} for {@code s3://bucket/models}. Called at the
     * start of the server, on a control thread; must be cheap.
     *
     * @return the scheme in lower case, which is the name of the plugin's directory or jar; the same at every call
     */
    String scheme();

    /**
     * Opens a model repository. Called once for each repository, at the start of the server, on a control thread that
     * may block, for a bounded time.
     *
     * @param context the repository and the services of the server, valid until the storage is closed
     * @return the storage, owned and later closed by the server
     * @throws BackendException if the URL or a setting is wrong; the server then does not start, and reports the
     *     message. A storage that cannot be reached at the moment is opened, and its methods fail
     */
    ModelStorage open(StorageContext context);
}
