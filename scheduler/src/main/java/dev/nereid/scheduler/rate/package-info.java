/**
 * Rate limiter: decides which instances of all models may execute at the same time.
 *
 * <p>Starting points: {@link dev.nereid.scheduler.rate.ExecutionLimiter} and
 * {@link dev.nereid.scheduler.rate.RateLimitRegistration}.
 */
@NullMarked
package dev.nereid.scheduler.rate;

import org.jspecify.annotations.NullMarked;
