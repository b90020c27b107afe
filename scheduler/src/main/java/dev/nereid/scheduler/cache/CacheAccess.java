package dev.nereid.scheduler.cache;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.cache.ResponseCache;
import java.util.concurrent.Executor;

/**
 * The response cache of the server, and an executor for expensive keys. Immutable.
 *
 * @param cache the cache, owned by the server, which closes it after all models
 * @param background computes the keys of large inputs; never blocks its callers
 */
public record CacheAccess(ResponseCache cache, Executor background) {
    /** Checks the components. */
    public CacheAccess {
        requireNonNull(cache, "cache");
        requireNonNull(background, "background");
    }
}
