package dev.nereid.server.cache;

import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.server.plugin.CachePlugin;
import dev.nereid.server.plugin.PluginEnvironment;
import dev.nereid.spi.cache.ResponseCache;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * The response cache of a server, with the threads that hash large inputs. Immutable but for its end; safe for use by
 * any thread.
 */
public final class ServerCache implements AutoCloseable {
    private static final int BACKGROUND_THREADS = 2;

    private final ResponseCache cache;
    private final ExecutorService background;
    private final CacheAccess access;

    private ServerCache(ResponseCache cache) {
        this.cache = cache;
        // Starts no thread before there is work for it.
        background = Executors.newFixedThreadPool(
                BACKGROUND_THREADS,
                Thread.ofPlatform()
                        .name("background/", 0)
                        .daemon(true)
                        .inheritInheritableThreadLocals(false)
                        .factory());
        access = new CacheAccess(cache, background);
    }

    /**
     * Opens a cache. Blocks while a plugin does.
     *
     * @param environment the version of the SPI that plugins are checked against, and the directory for copies of their
     *     jars
     * @return the cache, owned by the caller
     * @throws IllegalArgumentException if there is no such cache, if a setting is wrong, or if the cache cannot be used
     */
    public static ServerCache open(CacheOptions options, PluginEnvironment environment) {
        return new ServerCache(
                options.name().equals(CacheOptions.LOCAL)
                        ? LocalCache.of(options.settings())
                        : CachePlugin.open(
                                options.name(),
                                options.settings(),
                                options.environment(),
                                options.directories(),
                                environment));
    }

    /**
     * Returns the access of schedulers to the cache.
     *
     * @return the cache and the threads, which this object continues to own
     */
    public CacheAccess access() {
        return access;
    }

    /** Ends the cache. Called once, after the last model was closed. */
    @Override
    public void close() {
        background.shutdown();
        cache.close();
    }
}
