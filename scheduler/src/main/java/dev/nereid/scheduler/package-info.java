/**
 * Queues, batches and instances: decides which requests run together, where, and when.
 *
 * <p>Starting point: {@link dev.nereid.scheduler.CheckedCall}, what is scheduled.
 */
@NullMarked
package dev.nereid.scheduler;

import org.jspecify.annotations.NullMarked;
