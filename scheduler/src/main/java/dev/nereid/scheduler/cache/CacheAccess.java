package dev.nereid.scheduler.cache;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.cache.ResponseCache;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/**
 * The response cache of the server, as one model uses it. Immutable.
 *
 * @param cache the cache, owned by the server, which closes it after all models
 * @param background computes the keys of large inputs; never blocks its callers
 * @param loadId returns the identity of the loaded content that executes requests at this moment; part of each key, so
 *     that no load answers with the responses of another. Empty if the identity is not known: requests are not cached
 *     then. Never blocks
 */
public record CacheAccess(ResponseCache cache, Executor background, Supplier<Optional<String>> loadId) {
    public CacheAccess {
        requireNonNull(cache, "cache");
        requireNonNull(background, "background");
        requireNonNull(loadId, "loadId");
    }

    /** Creates an access that belongs to no model. Keys of large inputs are computed in the background. */
    public CacheAccess(ResponseCache cache, Executor background) {
        this(cache, background, () -> Optional.of(""));
    }

    /**
     * Returns the access of a model that executes requests by other models, which may be loaded again.
     *
     * @param changing returns the identity of the content of all these models; empty if it is not known
     * @return the same cache with this identity
     */
    public CacheAccess withLoadIds(Supplier<Optional<String>> changing) {
        return new CacheAccess(cache, background, changing);
    }
}
