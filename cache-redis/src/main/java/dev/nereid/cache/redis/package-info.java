/**
 * A cache of responses in Redis, which several servers may share. Knows the SPI and Lettuce.
 *
 * <p>Starting point: {@link dev.nereid.cache.redis.RedisCacheProvider}.
 */
@NullMarked
package dev.nereid.cache.redis;

import org.jspecify.annotations.NullMarked;
