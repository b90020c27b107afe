package dev.nereid.scheduler.instance;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Records executions of one instance that ended with an {@link OutOfMemoryError}. Written by the thread that runs the
 * instance; read by any thread.
 *
 * <p>The instance counts as failing after some failures in a row, since one may be due to its request alone. It does so
 * until an execution succeeds, or a minute has passed: without readiness it may get no requests, and so cannot show that it
 * works again.
 */
final class MemoryFailures {
    /** The number of executions in a row that have to fail. */
    static final int MIN_FAILURES = 3;

    /** The time for which failures count. */
    static final long LIMIT_NANOS = TimeUnit.MINUTES.toNanos(1);

    /** Chains of causes may be circular. */
    private static final int MAX_CAUSES = 8;

    private final AtomicLong total = new AtomicLong();
    private volatile int failures;
    private volatile long failedNanos;

    /**
     * Records the end of an execution.
     *
     * @param thrown the throwable of the execution; {@code null} for none
     */
    void ended(@Nullable Throwable thrown, long nowNanos) {
        if (thrown == null) {
            if (failures > 0) {
                failures = 0;
            }
        } else if (isOutOfMemory(thrown)) {
            failedNanos = nowNanos;
            failures = Math.min(MIN_FAILURES, failures + 1);
            total.incrementAndGet();
        }
    }

    private static boolean isOutOfMemory(Throwable thrown) {
        Throwable candidate = thrown;
        for (int depth = 0; candidate != null && depth < MAX_CAUSES; depth++) {
            if (candidate instanceof OutOfMemoryError) {
                return true;
            }
            candidate = candidate.getCause();
        }
        return false;
    }

    /** Returns whether the last executions failed for want of memory, and not long ago. */
    boolean isFailing(long nowNanos) {
        return failures >= MIN_FAILURES && nowNanos - failedNanos < LIMIT_NANOS;
    }

    /** Returns the number of executions that failed for want of memory. */
    long total() {
        return total.get();
    }
}
