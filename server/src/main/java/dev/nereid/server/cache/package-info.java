/**
 * The server's cache of responses: the one in its own memory, or one of a plugin.
 *
 * <p>Starting points: {@link dev.nereid.server.cache.CacheOptions} and {@link dev.nereid.server.cache.ServerCache},
 * which opens the cache that they name.
 */
@NullMarked
package dev.nereid.server.cache;

import org.jspecify.annotations.NullMarked;
