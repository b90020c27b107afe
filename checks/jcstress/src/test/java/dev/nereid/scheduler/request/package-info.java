/** Stress tests of the completion latch and the cancellation of a request. */
@NullMarked
package dev.nereid.scheduler.request;

import org.jspecify.annotations.NullMarked;
