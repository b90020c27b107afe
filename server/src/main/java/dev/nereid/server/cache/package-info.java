/**
 * The server's cache of responses: the one in its own memory, or one that a plugin brings.
 *
 * <p>Starting points: {@link dev.nereid.server.cache.CacheOptions}, what is asked for;
 * {@link dev.nereid.server.cache.ServerCache}, what came of it.
 */
@NullMarked
package dev.nereid.server.cache;

import org.jspecify.annotations.NullMarked;
