/** Stress of the latch and the withdrawal of a request. */
@NullMarked
package dev.nereid.scheduler;

import org.jspecify.annotations.NullMarked;
