/**
 * Response cache: lookup, insertion, keys and encoding.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.cache.CacheKeyDigest}, from a request to its key;
 * {@link dev.nereid.scheduler.cache.CachedResponse}, from outputs to bytes and back;
 * {@link dev.nereid.scheduler.cache.CachedSubmission}, which uses both.
 */
@NullMarked
package dev.nereid.scheduler.cache;

import org.jspecify.annotations.NullMarked;
