/**
 * A response cache in Redis, shared by several servers. Depends on the SPI and Lettuce.
 *
 * <p>Starting point: {@link dev.nereid.cache.redis.RedisCacheProvider}.
 */
@NullMarked
package dev.nereid.cache.redis;

import org.jspecify.annotations.NullMarked;
