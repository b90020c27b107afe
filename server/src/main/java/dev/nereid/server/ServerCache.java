package dev.nereid.server;

import dev.nereid.plugin.CachePlugin;
import dev.nereid.plugin.PluginEnvironment;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.plugin.cache.LocalCache;
import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.spi.cache.ResponseCache;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * The response cache of a server, with the threads that hash large inputs. Immutable but for its end; safe for use by
 * any thread.
 */
final class ServerCache implements AutoCloseable {
    private static final int BACKGROUND_THREADS = 2;

    /** The part of the size of the local cache that may be idle. Large pieces take a quarter more, at most. */
    private static final int IDLE_PART = 8;

    private final ResponseCache cache;
    private final Optional<TensorPool> pool;
    private final ExecutorService background;
    private final CacheAccess access;

    private ServerCache(ResponseCache cache, Optional<TensorPool> pool) {
        this.cache = cache;
        this.pool = pool;
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
    static ServerCache open(CacheOptions options, PluginEnvironment environment) {
        if (options.name().equals(CacheOptions.LOCAL)) {
            long size = LocalCache.size(options.settings());
            TensorPool pool = new TensorPool(Long.MAX_VALUE, size / IDLE_PART);
            return new ServerCache(new LocalCache(size, pool), Optional.of(pool));
        }
        return new ServerCache(
                CachePlugin.open(
                        options.name(), options.settings(), options.environment(), options.directories(), environment),
                Optional.empty());
    }

    /** Returns the access of schedulers to the cache and its threads, which this object continues to own. */
    CacheAccess access() {
        return access;
    }

    /** Ends the cache. Called once, after the last model was closed. */
    @Override
    public void close() {
        background.shutdown();
        cache.close();
        pool.ifPresent(TensorPool::close);
    }
}
