package dev.nereid.spi.cache;

import java.util.Map;

/**
 * Services of the server for a cache. Valid from creation to close of the cache; safe for use by several threads.
 * <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
public interface CacheContext {
    /**
     * Returns the settings of the cache from the server's command line ({@code --cache-config}).
     *
     * @return the settings by name; immutable
     */
    Map<String, String> settings();

    /**
     * Returns the log of the cache.
     *
     * @return a logger named after the cache
     */
    System.Logger logger();
}
