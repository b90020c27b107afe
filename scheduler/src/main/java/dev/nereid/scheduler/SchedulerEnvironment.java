package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.TensorMemory;
import dev.nereid.scheduler.cache.CacheAccess;
import java.util.Optional;
import java.util.function.LongSupplier;

/**
 * What schedulers take from the server around them. Immutable.
 *
 * @param memory the pool for gathered inputs and for outputs
 * @param nanoTime the clock, on the scale of {@link System#nanoTime()}
 * @param backend what the backend of the model allows
 * @param cache the cache of responses that the model uses; empty for none
 */
public record SchedulerEnvironment(
        TensorMemory memory, LongSupplier nanoTime, BackendTerms backend, Optional<CacheAccess> cache) {
    /** Checks the components. */
    public SchedulerEnvironment {
        requireNonNull(memory, "memory");
        requireNonNull(nanoTime, "nanoTime");
        requireNonNull(backend, "backend");
        requireNonNull(cache, "cache");
    }

    /**
     * Makes an environment for any backend.
     *
     * @param memory the pool for gathered inputs and for outputs
     * @param nanoTime the clock, on the scale of {@link System#nanoTime()}
     */
    public SchedulerEnvironment(TensorMemory memory, LongSupplier nanoTime) {
        this(memory, nanoTime, BackendTerms.DEFAULT, Optional.empty());
    }

    /**
     * Returns the same environment for a certain backend.
     *
     * @param terms what the backend allows
     * @return the changed environment
     */
    public SchedulerEnvironment with(BackendTerms terms) {
        return new SchedulerEnvironment(memory, nanoTime, terms, cache);
    }

    /**
     * Returns the same environment with another cache.
     *
     * @param changed the cache of responses that the model uses; empty for none
     * @return the changed environment
     */
    public SchedulerEnvironment with(Optional<CacheAccess> changed) {
        return new SchedulerEnvironment(memory, nanoTime, backend, changed);
    }
}
