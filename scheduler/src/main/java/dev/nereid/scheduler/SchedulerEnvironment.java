package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.admission.LoadLimits;
import dev.nereid.scheduler.admission.ServerLoad;
import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.time.Timer;
import java.time.InstantSource;
import java.util.Optional;
import java.util.function.LongSupplier;

/**
 * Services of the server that schedulers use. Immutable.
 *
 * @param memory the pool for gathered inputs and for outputs
 * @param clocks the clocks and the timer
 * @param cache the cache of responses that the model uses; empty for none
 * @param load what the calls to all models have in flight, and how much that may be
 * @param rateLimiter decides which instances of all models may execute at the same time
 * @param supervision who is told of fatal errors, and what is reported as overdue
 * @param schedulerDelay how many requests have to wait before a dynamic batcher takes its first batch; 0 for any
 *     number. For tests
 */
public record SchedulerEnvironment(
        TensorMemory memory,
        SchedulerClocks clocks,
        Optional<CacheAccess> cache,
        ServerLoad load,
        RateLimiter rateLimiter,
        Supervision supervision,
        int schedulerDelay) {
    /** Checks the components. */
    public SchedulerEnvironment {
        requireNonNull(memory, "memory");
        requireNonNull(clocks, "clocks");
        requireNonNull(cache, "cache");
        requireNonNull(load, "load");
        requireNonNull(rateLimiter, "rateLimiter");
        requireNonNull(supervision, "supervision");
        if (schedulerDelay < 0) {
            throw new IllegalArgumentException("schedulerDelay: " + schedulerDelay + " (expected: >= 0)");
        }
    }

    /**
     * Makes an environment without cache, bounds, rate limiter and supervision, with the time of day of the machine.
     *
     * @param memory the pool for gathered inputs and for outputs
     * @param nanoTime the clock, on the scale of {@link System#nanoTime()}
     * @param timer rings when the time of a waiting request is over; runs on the same clock
     */
    public SchedulerEnvironment(TensorMemory memory, LongSupplier nanoTime, Timer timer) {
        this(
                memory,
                new SchedulerClocks(nanoTime, InstantSource.system(), timer),
                Optional.empty(),
                new ServerLoad(LoadLimits.NONE),
                RateLimiter.OFF,
                Supervision.NONE,
                0);
    }

    /**
     * Returns the same environment with another cache.
     *
     * @param changed the cache of responses that the model uses; empty for none
     * @return the changed environment
     */
    public SchedulerEnvironment with(Optional<CacheAccess> changed) {
        return new SchedulerEnvironment(memory, clocks, changed, load, rateLimiter, supervision, schedulerDelay);
    }

    /**
     * Returns the same environment with another load.
     *
     * @param changed what the calls to all models have in flight, and how much that may be
     * @return the changed environment
     */
    public SchedulerEnvironment with(ServerLoad changed) {
        return new SchedulerEnvironment(memory, clocks, cache, changed, rateLimiter, supervision, schedulerDelay);
    }

    /**
     * Returns the same environment with another rate limiter.
     *
     * @param changed decides which instances of all models may execute at the same time
     * @return the changed environment
     */
    public SchedulerEnvironment with(RateLimiter changed) {
        return new SchedulerEnvironment(memory, clocks, cache, load, changed, supervision, schedulerDelay);
    }

    /**
     * Returns the same environment with another supervision.
     *
     * @param changed who is told of fatal errors, and what is reported as overdue
     * @return the changed environment
     */
    public SchedulerEnvironment with(Supervision changed) {
        return new SchedulerEnvironment(memory, clocks, cache, load, rateLimiter, changed, schedulerDelay);
    }

    /**
     * Returns the same environment with another delay of schedulers.
     *
     * @param changed how many requests have to wait before a dynamic batcher takes its first batch; 0 for any number
     * @return the changed environment
     */
    public SchedulerEnvironment withSchedulerDelay(int changed) {
        return new SchedulerEnvironment(memory, clocks, cache, load, rateLimiter, supervision, changed);
    }
}
