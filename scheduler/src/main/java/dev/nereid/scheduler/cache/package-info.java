/**
 * How calls and responses look to a cache of responses: keys and bytes.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.cache.CallDigest}, from a call to its key;
 * {@link dev.nereid.scheduler.cache.CachedResponse}, from outputs to bytes and back. What uses them is the gate of a
 * model's scheduler.
 */
@NullMarked
package dev.nereid.scheduler.cache;

import org.jspecify.annotations.NullMarked;
