package dev.nereid.api.statistics;

/**
 * Summed durations of requests in microseconds, as the metrics report them. Immutable.
 *
 * @param request from arrival to response
 * @param queue from entering the queue to execution
 * @param computeInput preparation of inputs
 * @param computeInfer computation
 * @param computeOutput delivery of outputs
 * @param cacheHit look-ups of responses that the cache had
 * @param cacheMiss look-ups of responses that the cache lacked, and their insertions
 */
public record MicrosCounters(
        long request,
        long queue,
        long computeInput,
        long computeInfer,
        long computeOutput,
        long cacheHit,
        long cacheMiss) {}
