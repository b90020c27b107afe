package dev.nereid.scheduler.statistics;

import dev.nereid.api.statistics.Timing;

/** A count and a sum of durations. Guarded by the lock of its meter. */
final class RunningTiming {
    private long count;
    private long nanos;

    void add(long times, long duration) {
        count += times;
        nanos += duration;
    }

    Timing read() {
        return new Timing(count, nanos);
    }
}
