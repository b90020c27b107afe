/**
 * The server's response cache. It lies in the server's memory, or belongs to a plugin.
 *
 * <p>Starting points: {@link dev.nereid.plugin.cache.CacheOptions} and {@link dev.nereid.server.ServerCache},
 * which opens the cache that they name.
 */
@NullMarked
package dev.nereid.plugin.cache;

import org.jspecify.annotations.NullMarked;
