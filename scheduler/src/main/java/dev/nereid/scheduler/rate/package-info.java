/**
 * The rate limiter: which instances of all models may run at the same time.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.rate.RateLimiter} and {@link dev.nereid.scheduler.rate.Ticket}.
 */
@NullMarked
package dev.nereid.scheduler.rate;

import org.jspecify.annotations.NullMarked;
