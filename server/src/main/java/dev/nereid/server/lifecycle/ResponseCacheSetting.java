package dev.nereid.server.lifecycle;

import dev.nereid.scheduler.cache.CacheAccess;
import inference.ModelConfig;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Response cache setting of a model. Immutable.
 *
 * @param model the model's name
 */
public record ResponseCacheSetting(String model, boolean enabled) {
    private static final Logger LOG = LoggerFactory.getLogger(ResponseCacheSetting.class);

    public static ResponseCacheSetting of(ModelConfig config) {
        return new ResponseCacheSetting(
                config.getName(), config.getResponseCache().getEnable());
    }

    /**
     * Returns the server's cache, if the model enables it; warns if there is none.
     *
     * @param cache the server's cache; empty if it has none
     * @param identity the identity of the model's files; computed only if the model uses a cache
     */
    public Optional<CacheAccess> select(Optional<CacheAccess> cache, LoadIdentity identity) {
        if (enabled && cache.isEmpty()) {
            LOG.atWarn()
                    .addKeyValue("model", model)
                    .log(
                            "response_cache has no effect: the server has no cache (expected: --cache-config) (model '{}')",
                            model);
        }
        if (!enabled || cache.isEmpty()) {
            return Optional.empty();
        }
        identity.compute();
        return cache.map(access -> access.withLoadIds(identity::known));
    }
}
