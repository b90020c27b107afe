package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.TensorMemory;
import java.util.function.LongSupplier;

/**
 * What schedulers take from the server around them. Immutable.
 *
 * @param memory the pool for gathered inputs and for outputs
 * @param nanoTime the clock, on the scale of {@link System#nanoTime()}
 * @param clientMemory whether the backend works in memory of clients, which may go away at any time
 */
public record SchedulerEnvironment(TensorMemory memory, LongSupplier nanoTime, boolean clientMemory) {
    /** Checks the components. */
    public SchedulerEnvironment {
        requireNonNull(memory, "memory");
        requireNonNull(nanoTime, "nanoTime");
    }

    /**
     * Makes an environment for backends that do not work in memory of clients.
     *
     * @param memory the pool for gathered inputs and for outputs
     * @param nanoTime the clock, on the scale of {@link System#nanoTime()}
     */
    public SchedulerEnvironment(TensorMemory memory, LongSupplier nanoTime) {
        this(memory, nanoTime, false);
    }

    /**
     * Returns the same environment for a certain backend.
     *
     * @param allowed whether the backend works in memory of clients
     * @return the changed environment
     */
    public SchedulerEnvironment withClientMemory(boolean allowed) {
        return new SchedulerEnvironment(memory, nanoTime, allowed);
    }
}
