package dev.nereid.server.lifecycle;

import dev.nereid.scheduler.cache.CacheAccess;
import inference.ModelConfig;
import java.util.Optional;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Response cache setting of a model. Immutable.
 *
 * @param model the model's name
 * @param enabled whether its configuration enables the response cache
 */
public record ResponseCacheSetting(String model, boolean enabled) {
    private static final Logger LOG = LoggerFactory.getLogger(ResponseCacheSetting.class);

    /** Reads the setting of a model. */
    public static ResponseCacheSetting of(ModelConfig config) {
        return new ResponseCacheSetting(
                config.getName(), config.getResponseCache().getEnable());
    }

    /**
     * Returns the server's cache, if the model enables it; warns if there is none.
     *
     * @param cache the server's cache; empty if it has none
     * @param loadId computes what the model is loaded from; called only if the model uses a cache
     */
    public Optional<CacheAccess> select(Optional<CacheAccess> cache, Supplier<String> loadId) {
        if (enabled && cache.isEmpty()) {
            LOG.atWarn()
                    .addKeyValue("model", model)
                    .log("response_cache has no effect: the server has no cache (expected: --cache-config)");
        }
        return enabled ? cache.map(access -> access.withLoadId(loadId.get())) : Optional.empty();
    }
}
