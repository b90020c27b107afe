package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

/**
 * Counts and durations of the requests to a model version, by phase. Immutable.
 *
 * @param success requests that were answered well, hits of the cache included, from arrival to answer; the durations
 *     hold what misses of the cache cost
 * @param fail requests that failed, whatever the reason, from arrival to answer
 * @param queue requests that were answered well, from being queued to being executed or found in the cache
 * @param computeInput requests that were executed well: preparing inputs
 * @param computeInfer the same requests: computing
 * @param computeOutput the same requests: giving outputs back
 * @param cacheHit requests whose response was found in the cache: the look-up
 * @param cacheMiss requests whose response was not: look-up and insertion
 */
public record InferenceTimings(
        Timing success,
        Timing fail,
        Timing queue,
        Timing computeInput,
        Timing computeInfer,
        Timing computeOutput,
        Timing cacheHit,
        Timing cacheMiss) {
    /** Checks the components. */
    public InferenceTimings {
        requireNonNull(success, "success");
        requireNonNull(fail, "fail");
        requireNonNull(queue, "queue");
        requireNonNull(computeInput, "computeInput");
        requireNonNull(computeInfer, "computeInfer");
        requireNonNull(computeOutput, "computeOutput");
        requireNonNull(cacheHit, "cacheHit");
        requireNonNull(cacheMiss, "cacheMiss");
    }
}
