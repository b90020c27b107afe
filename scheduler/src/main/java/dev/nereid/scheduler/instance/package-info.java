/** Instances: their threads, direct execution by submitting threads, warm-up and execution watch. */
@NullMarked
package dev.nereid.scheduler.instance;

import org.jspecify.annotations.NullMarked;
