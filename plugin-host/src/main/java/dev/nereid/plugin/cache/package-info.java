/**
 * Response caches: the one in the server's memory, and the options of this and of caches in plugins.
 *
 * <p>Starting points: {@link dev.nereid.plugin.cache.CacheOptions} and {@link dev.nereid.plugin.cache.LocalCache}.
 */
@NullMarked
package dev.nereid.plugin.cache;

import org.jspecify.annotations.NullMarked;
