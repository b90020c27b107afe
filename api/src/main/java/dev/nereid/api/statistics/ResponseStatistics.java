package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

/**
 * Counts and durations of a decoupled model's responses at one index. Immutable.
 *
 * @param computeInfer the time before outputs were delivered, of all responses but cancelled ones
 * @param computeOutput the time in which outputs were delivered
 * @param success the responses with outputs
 * @param fail the responses that failed
 * @param emptyResponse the final responses without outputs
 * @param cancel the responses that were not made since the request was cancelled
 */
public record ResponseStatistics(
        Timing computeInfer, Timing computeOutput, Timing success, Timing fail, Timing emptyResponse, Timing cancel) {
    /** Checks the components. */
    public ResponseStatistics {
        requireNonNull(computeInfer, "computeInfer");
        requireNonNull(computeOutput, "computeOutput");
        requireNonNull(success, "success");
        requireNonNull(fail, "fail");
        requireNonNull(emptyResponse, "emptyResponse");
        requireNonNull(cancel, "cancel");
    }
}
