package dev.nereid.spi.cache;

import dev.nereid.spi.Incubating;
import dev.nereid.spi.Metrics;
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
     * Returns the environment variables of the server, where credentials may be configured.
     *
     * @return the variables by name; immutable
     */
    default Map<String, String> environment() {
        return Map.of();
    }

    /**
     * Returns the log of the cache. Credentials must not appear in it.
     *
     * @return a logger named after the cache
     */
    System.Logger logger();

    /**
     * Returns the custom metrics of the cache.
     *
     * @return the metrics, the same at every call; counted and not published by a server without custom metrics
     */
    @Incubating
    default Metrics metrics() {
        return Metrics.unpublished(logger());
    }
}
