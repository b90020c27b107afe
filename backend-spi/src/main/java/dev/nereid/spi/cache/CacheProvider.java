package dev.nereid.spi.cache;

import dev.nereid.spi.BackendException;

/**
 * The entry point of a plugin that brings a cache. <em>Implemented by caches.</em>
 *
 * <p>The server finds it with {@link java.util.ServiceLoader}: the plugin's jar names the class in
 * {@code META-INF/services/dev.nereid.spi.cache.CacheProvider}, its manifest has the entry {@code Backend-Spi-Version},
 * and the class has a public constructor without arguments. Only the plugin that the command line names is loaded.
 *
 * @since 1.0
 */
public interface CacheProvider {
    /**
     * Returns the name of this cache on the command line ({@code --cache-config=NAME,KEY=VALUE}). Called at
     * the start of the server, on a control thread; must be cheap.
     *
     * @return the name, which is that of the plugin's directory or jar; the same at every call
     */
    String name();

    /**
     * Creates the cache. Called once, at the start of the server, on a control thread that may block.
     *
     * @param context the services of the server for the cache, valid until the cache is closed
     * @return the cache, owned and later closed by the server
     * @throws BackendException if a setting is wrong or unknown, or if the cache cannot be used; the server then does
     *     not start, and reports the message
     */
    ResponseCache create(CacheContext context);
}
