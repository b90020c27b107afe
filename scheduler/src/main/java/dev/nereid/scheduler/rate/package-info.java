/** The rate limiter: which instances of all models may run at the same time. */
@NullMarked
package dev.nereid.scheduler.rate;

import org.jspecify.annotations.NullMarked;
