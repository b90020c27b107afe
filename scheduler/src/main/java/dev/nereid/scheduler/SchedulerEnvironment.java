package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.Refusals;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.admission.AdmissionCounts;
import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.scheduler.client.WaitingCalls;
import dev.nereid.scheduler.memory.StackReserve;
import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.scheduler.time.Timer;
import java.time.InstantSource;
import java.util.Optional;
import java.util.function.LongSupplier;

/**
 * Services of the server that schedulers use. Immutable.
 *
 * @param memory the pool for gathered inputs and for outputs
 * @param cache the response cache that the model uses; empty for none
 * @param admission the load of all models, and its limits
 * @param rateLimiter decides which instances of all models may execute at the same time
 * @param supervision the handler of fatal errors, and the time limits of executions
 * @param schedulerDelay the requests that have to wait before a scheduler executes its first one. For tests
 * @param refusals counts the requests that are refused for a mistake of their client
 * @param calls finds requests of models to each other that would wait for ever
 */
public record SchedulerEnvironment(
        TensorMemory memory,
        Clocks clocks,
        Optional<CacheAccess> cache,
        AdmissionCounts admission,
        ExecutionLimiter rateLimiter,
        Supervision supervision,
        SchedulerDelay schedulerDelay,
        Refusals refusals,
        WaitingCalls calls) {
    public SchedulerEnvironment {
        requireNonNull(memory, "memory");
        requireNonNull(clocks, "clocks");
        requireNonNull(cache, "cache");
        requireNonNull(admission, "admission");
        requireNonNull(rateLimiter, "rateLimiter");
        requireNonNull(supervision, "supervision");
        requireNonNull(schedulerDelay, "schedulerDelay");
        requireNonNull(refusals, "refusals");
        requireNonNull(calls, "calls");
        StackReserve.require(); // the first time, far from the end of the stack of a plugin
    }

    /** Creates an environment without cache, limits and supervision, with the time of day of the machine. */
    public SchedulerEnvironment(TensorMemory memory, LongSupplier nanoTime, Timer timer) {
        this(
                memory,
                new Clocks(nanoTime, InstantSource.system(), timer),
                Optional.empty(),
                new AdmissionCounts(AdmissionLimits.NONE),
                ExecutionLimiter.OFF,
                Supervision.NONE,
                SchedulerDelay.NONE,
                Refusals.NONE,
                new WaitingCalls());
    }

    /** Returns the same environment with another response cache, which the model uses; empty for none. */
    public SchedulerEnvironment with(Optional<CacheAccess> changed) {
        return new SchedulerEnvironment(
                memory, clocks, changed, admission, rateLimiter, supervision, schedulerDelay, refusals, calls);
    }

    /** Returns the same environment with another load of all models, and its limits. */
    public SchedulerEnvironment with(AdmissionCounts changed) {
        return new SchedulerEnvironment(
                memory, clocks, cache, changed, rateLimiter, supervision, schedulerDelay, refusals, calls);
    }

    /** Returns the same environment with another rate limiter. */
    public SchedulerEnvironment with(ExecutionLimiter changed) {
        return new SchedulerEnvironment(
                memory, clocks, cache, admission, changed, supervision, schedulerDelay, refusals, calls);
    }

    /** Returns the same environment with another supervision. */
    public SchedulerEnvironment with(Supervision changed) {
        return new SchedulerEnvironment(
                memory, clocks, cache, admission, rateLimiter, changed, schedulerDelay, refusals, calls);
    }

    /** Returns the same environment with another scheduler delay. */
    public SchedulerEnvironment withSchedulerDelay(SchedulerDelay changed) {
        return new SchedulerEnvironment(
                memory, clocks, cache, admission, rateLimiter, supervision, changed, refusals, calls);
    }

    /** Returns the same environment with other counters of refusals. */
    public SchedulerEnvironment with(Refusals changed) {
        return new SchedulerEnvironment(
                memory, clocks, cache, admission, rateLimiter, supervision, schedulerDelay, changed, calls);
    }

    /**
     * The clocks and the timer of schedulers. Immutable.
     *
     * @param nanoTime the clock, on the scale of {@link System#nanoTime()}
     * @param timer runs the timeouts of waiting requests, on the same clock as {@code nanoTime}
     */
    public record Clocks(LongSupplier nanoTime, InstantSource wallClock, Timer timer) {
        public Clocks {
            requireNonNull(nanoTime, "nanoTime");
            requireNonNull(wallClock, "wallClock");
            requireNonNull(timer, "timer");
        }
    }
}
