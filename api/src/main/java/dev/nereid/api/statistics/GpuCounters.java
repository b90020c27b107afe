package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

/**
 * Counts the executions of a model version on one GPU, as a part of the figures of the version. Immutable.
 *
 * @param gpu the number of the GPU
 * @param success the number of successful requests
 * @param inferences the number of their items
 * @param executions the number of executions
 * @param micros the durations of the requests, without look-ups in a cache
 */
public record GpuCounters(int gpu, long success, long inferences, long executions, MicrosCounters micros) {
    /** Checks the components. */
    public GpuCounters {
        requireNonNull(micros, "micros");
    }
}
