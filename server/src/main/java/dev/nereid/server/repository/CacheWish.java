package dev.nereid.server.repository;

import dev.nereid.scheduler.cache.CacheAccess;
import inference.ModelConfig;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether a model wants its responses kept. Immutable.
 *
 * @param model the model's name
 * @param wanted whether its configuration asks for it
 */
record CacheWish(String model, boolean wanted) {
    private static final Logger LOG = LoggerFactory.getLogger(CacheWish.class);

    /** Reads the wish of a model. */
    static CacheWish of(ModelConfig config) {
        return new CacheWish(config.getName(), config.getResponseCache().getEnable());
    }

    /** Returns the server's cache, if the model wants it; warns if there is none. */
    Optional<CacheAccess> from(Optional<CacheAccess> cache) {
        if (wanted && cache.isEmpty()) {
            LOG.atWarn()
                    .addKeyValue("model", model)
                    .log("model asks for response_cache, and the server has no cache (expected: --cache-config)");
        }
        return wanted ? cache : Optional.empty();
    }
}
