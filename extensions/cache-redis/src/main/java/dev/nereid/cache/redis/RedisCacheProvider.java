package dev.nereid.cache.redis;

import dev.nereid.spi.cache.CacheContext;
import dev.nereid.spi.cache.CacheProvider;
import dev.nereid.spi.cache.ResponseCache;

/** Provider of the response cache {@code redis}. Immutable. */
public final class RedisCacheProvider implements CacheProvider {
    /** Called by the service loader. */
    public RedisCacheProvider() {}

    @Override
    public String name() {
        return "redis";
    }

    @Override
    public ResponseCache create(CacheContext context) {
        return RedisCache.connect(RedisSettings.of(context.settings(), context.environment()));
    }
}
