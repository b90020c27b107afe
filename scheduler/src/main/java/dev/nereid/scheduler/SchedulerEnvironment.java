package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.TensorMemory;
import java.util.function.LongSupplier;

/**
 * What schedulers take from the server around them. Immutable.
 *
 * @param memory the pool for gathered inputs and for outputs
 * @param nanoTime the clock, on the scale of {@link System#nanoTime()}
 */
public record SchedulerEnvironment(TensorMemory memory, LongSupplier nanoTime) {
    /** Checks the components. */
    public SchedulerEnvironment {
        requireNonNull(memory, "memory");
        requireNonNull(nanoTime, "nanoTime");
    }
}
