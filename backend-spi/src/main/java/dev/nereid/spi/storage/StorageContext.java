package dev.nereid.spi.storage;

import java.util.Map;

/**
 * One model repository, and services of the server for its storage. Valid from the opening to the close of the storage;
 * safe for use by several threads. <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
public interface StorageContext {
    /**
     * Returns the URL of the repository as on the server's command line ({@code --model-repository}).
     *
     * @return the URL, which begins with the provider's scheme and {@code ://}; not decoded or checked
     */
    String url();

    /**
     * Returns the environment variables of the server, where credentials and local directories are configured.
     *
     * @return the variables by name; immutable
     */
    Map<String, String> environment();

    /**
     * Returns the log of the storage. Credentials must not appear in it.
     *
     * @return a logger named after the scheme
     */
    System.Logger logger();
}
