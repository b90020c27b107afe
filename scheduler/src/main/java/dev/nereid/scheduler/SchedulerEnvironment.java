package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.TensorMemory;
import java.time.InstantSource;
import java.util.function.LongSupplier;

/**
 * What schedulers take from the server around them. Immutable.
 *
 * @param memory the pool for gathered inputs and for outputs
 * @param nanoTime the clock, on the scale of {@link System#nanoTime()}
 * @param wallClock tells the time of day
 * @param backend what the backend of the model allows
 */
public record SchedulerEnvironment(
        TensorMemory memory, LongSupplier nanoTime, InstantSource wallClock, BackendTerms backend) {
    /** Checks the components. */
    public SchedulerEnvironment {
        requireNonNull(memory, "memory");
        requireNonNull(nanoTime, "nanoTime");
        requireNonNull(wallClock, "wallClock");
        requireNonNull(backend, "backend");
    }

    /**
     * Makes an environment for any backend, with the time of day of the machine.
     *
     * @param memory the pool for gathered inputs and for outputs
     * @param nanoTime the clock, on the scale of {@link System#nanoTime()}
     */
    public SchedulerEnvironment(TensorMemory memory, LongSupplier nanoTime) {
        this(memory, nanoTime, InstantSource.system(), BackendTerms.DEFAULT);
    }

    /**
     * Returns the same environment for a certain backend.
     *
     * @param terms what the backend allows
     * @return the changed environment
     */
    public SchedulerEnvironment with(BackendTerms terms) {
        return new SchedulerEnvironment(memory, nanoTime, wallClock, terms);
    }
}
