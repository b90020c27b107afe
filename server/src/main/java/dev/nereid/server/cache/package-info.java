/**
 * The server's response cache. It lies in the server's memory, or belongs to a plugin.
 *
 * <p>Starting points: {@link dev.nereid.server.cache.CacheOptions} and {@link dev.nereid.server.cache.ServerCache},
 * which opens the cache that they name.
 */
@NullMarked
package dev.nereid.server.cache;

import org.jspecify.annotations.NullMarked;
