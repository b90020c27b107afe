package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.time.Timer;
import java.time.InstantSource;
import java.util.function.LongSupplier;

/**
 * The clocks and the timer of schedulers. Immutable.
 *
 * @param nanoTime the clock, on the scale of {@link System#nanoTime()}
 * @param timer runs the timeouts of waiting requests, on the same clock as {@code nanoTime}
 */
public record SchedulerClocks(LongSupplier nanoTime, InstantSource wallClock, Timer timer) {
    public SchedulerClocks {
        requireNonNull(nanoTime, "nanoTime");
        requireNonNull(wallClock, "wallClock");
        requireNonNull(timer, "timer");
    }
}
