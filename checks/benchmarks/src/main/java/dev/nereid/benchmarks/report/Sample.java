package dev.nereid.benchmarks.report;

/**
 * Throughput and latencies of one period of load. Immutable.
 *
 * @param perSecond inferences completed per second
 * @param p50Micros the latency that half of the calls kept, in microseconds
 * @param p99Micros the latency that 99 of 100 calls kept, in microseconds
 */
public record Sample(double perSecond, double p50Micros, double p99Micros) {
    public Sample {
        if (!(perSecond > 0)) {
            throw new IllegalArgumentException("perSecond: " + perSecond + " (expected: > 0)");
        }
    }
}
