package dev.nereid.benchmarks.load;

import dev.nereid.benchmarks.report.Sample;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/**
 * Counts latencies in buckets each 1/64 wider than the one before. Confined to one thread at a time.
 *
 * <p>Latencies of any size are accurate to 1.6 %, in a fixed 32 KB: recording allocates nothing.
 */
public final class LatencyHistogram {
    /** A power of two is cut into this many buckets. */
    private static final int STEPS_LOG2 = 6;

    private static final int STEPS = 1 << STEPS_LOG2;

    private final long[] counts = new long[(Long.SIZE - STEPS_LOG2) << STEPS_LOG2];
    private long total;

    public void record(long nanos) {
        counts[bucket(Math.max(0, nanos))]++;
        total++;
    }

    /** Adds all that another one counted. */
    void add(LatencyHistogram other) {
        for (int i = 0; i < counts.length; i++) {
            counts[i] += other.counts[i];
        }
        total += other.total;
    }

    void clear() {
        Arrays.fill(counts, 0);
        total = 0;
    }

    /** Records one call after another on this thread, until {@code endNanos} of {@link System#nanoTime()}. */
    void record(ThreadLoad.Caller caller, long endNanos) throws IOException {
        long before = System.nanoTime();
        while (before - endNanos < 0) {
            caller.call();
            long after = System.nanoTime();
            record(after - before);
            before = after;
        }
    }

    /** Returns throughput and latencies, if all calls were made in a period of {@code nanos}. */
    Sample sample(long nanos) {
        return sample(nanos, 1);
    }

    /** Returns throughput and latencies of calls in {@code nanos}, each of which counts as {@code batch} inferences. */
    private Sample sample(long nanos, long batch) {
        double seconds = (double) nanos / TimeUnit.SECONDS.toNanos(1);
        return new Sample(total * batch / seconds, percentileMicros(50), percentileMicros(99));
    }

    /** Runs a period of calls, each of which counts as {@code batch} inferences, on this thread. */
    public static Sample ofCalls(ThreadLoad.Caller caller, Duration time, long batch) throws IOException {
        LatencyHistogram latencies = new LatencyHistogram();
        long start = System.nanoTime();
        latencies.record(caller, start + time.toNanos());
        return latencies.sample(System.nanoTime() - start, batch);
    }

    public long total() {
        return total;
    }

    /** Returns the latency in microseconds that a percentage of calls (above 0, up to 100) kept; 0 without calls. */
    public double percentileMicros(double percent) {
        long rank = (long) Math.ceil(total * percent / 100);
        long seen = 0;
        for (int i = 0; i < counts.length && total > 0; i++) {
            seen += counts[i];
            if (seen >= rank) {
                return (lower(i) + lower(i + 1)) / 2.0 / 1_000;
            }
        }
        return 0;
    }

    private static int bucket(long nanos) {
        if (nanos < STEPS) {
            return (int) nanos;
        }
        int shift = Long.SIZE - 1 - Long.numberOfLeadingZeros(nanos) - STEPS_LOG2;
        return ((shift + 1) << STEPS_LOG2) + (int) ((nanos >>> shift) - STEPS);
    }

    /** The smallest latency of a bucket, in nanoseconds. */
    private static long lower(int bucket) {
        int shift = (bucket >> STEPS_LOG2) - 1;
        return shift < 0 ? bucket : (long) (STEPS + (bucket & (STEPS - 1))) << shift;
    }
}
