package dev.nereid.api.statistics;

/**
 * Summed durations of requests in microseconds, as the metrics report them. Immutable.
 *
 * @param request from arrival to answer
 * @param queue from being queued to being executed
 * @param computeInput preparing inputs
 * @param computeInfer computing
 * @param computeOutput giving outputs back
 * @param cacheHit looking responses up that the cache had
 * @param cacheMiss looking responses up that it had not, and putting them in
 */
public record MicrosCounters(
        long request,
        long queue,
        long computeInput,
        long computeInfer,
        long computeOutput,
        long cacheHit,
        long cacheMiss) {}
