package dev.nereid.scheduler.cache;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.cache.ResponseCache;
import java.util.concurrent.Executor;

/**
 * The response cache of the server, as one model uses it. Immutable.
 *
 * @param cache the cache, owned by the server, which closes it after all models
 * @param background computes the keys of large inputs; never blocks its callers
 * @param loadId identifies what the model was loaded from, so that no load answers with the responses of another; part
 *     of each key
 */
public record CacheAccess(ResponseCache cache, Executor background, String loadId) {
    /** Checks the components. */
    public CacheAccess {
        requireNonNull(cache, "cache");
        requireNonNull(background, "background");
        requireNonNull(loadId, "loadId");
    }

    /**
     * Creates the access of no model in particular.
     *
     * @param cache the cache
     * @param background computes the keys of large inputs
     */
    public CacheAccess(ResponseCache cache, Executor background) {
        this(cache, background, "");
    }

    /**
     * Returns the access of one load of a model.
     *
     * @param changed identifies what the model was loaded from
     * @return the same cache with this identity
     */
    public CacheAccess withLoadId(String changed) {
        return new CacheAccess(cache, background, changed);
    }
}
