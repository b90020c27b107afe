package dev.nereid.backend.python;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.function.LongSupplier;

/** Counts the restarts of an instance since one of its processes has served for a minute. Guarded by the lock of the instance. */
final class Restarts {
    private static final long SERVICE_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final IntFunction<Duration> delays;
    private final LongSupplier nanoTime;
    private int count;
    private long servingSince;

    /** Creates the restarts of an instance; {@code delays} has the pause before each restart, counted from 0. */
    Restarts(IntFunction<Duration> delays, LongSupplier nanoTime) {
        this.delays = delays;
        this.nanoTime = nanoTime;
    }

    /** Says that a process begins to serve. */
    void serving() {
        servingSince = nanoTime.getAsLong();
    }

    /** Says that a process that has served has ended. */
    void ended() {
        if (nanoTime.getAsLong() - servingSince >= SERVICE_NANOS) {
            count = 0;
        }
    }

    /** Returns whether the next restart is the first one. */
    boolean isFirst() {
        return count == 0;
    }

    /** Returns the pause before the next restart, and counts it. */
    Duration next() {
        Duration delay = delays.apply(count);
        if (count < Integer.MAX_VALUE) {
            count++;
        }
        return delay;
    }
}
