package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

/**
 * Counts and durations of the requests to a model version, by phase. Immutable.
 *
 * @param success successful requests, cache hits included, from arrival to response; the durations include the cost of
 *     cache misses
 * @param fail requests that failed, whatever the reason, from arrival to response
 * @param queue successful requests, from entering the queue to execution or cache hit
 * @param compute requests that were executed successfully, by phase
 * @param cacheHit requests with a cached response: the look-up
 * @param cacheMiss requests without a cached response: look-up and insertion
 */
public record InferenceTimings(
        Timing success, Timing fail, Timing queue, ComputeTimings compute, Timing cacheHit, Timing cacheMiss) {
    /** Checks the components. */
    public InferenceTimings {
        requireNonNull(success, "success");
        requireNonNull(fail, "fail");
        requireNonNull(queue, "queue");
        requireNonNull(compute, "compute");
        requireNonNull(cacheHit, "cacheHit");
        requireNonNull(cacheMiss, "cacheMiss");
    }
}
