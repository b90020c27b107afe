package dev.nereid.scheduler.statistics;

import dev.nereid.api.Timing;

/** A {@link Timing} that grows. Guarded by the lock of its meter. */
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
