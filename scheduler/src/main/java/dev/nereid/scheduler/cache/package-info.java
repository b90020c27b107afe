/**
 * Response cache: lookup, insertion, keys and encoding.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.cache.RequestDigest}, from a call to its key;
 * {@link dev.nereid.scheduler.cache.CachedResponse}, from outputs to bytes and back. What uses them is the gate of a
 * model's scheduler.
 */
@NullMarked
package dev.nereid.scheduler.cache;

import org.jspecify.annotations.NullMarked;
