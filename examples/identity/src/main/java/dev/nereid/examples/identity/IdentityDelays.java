package dev.nereid.examples.identity;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Parameters;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Waits that simulate the work of a model. Immutable.
 *
 * @param executionNanos how long each execution takes at least, in nanoseconds
 * @param multiplier how many times as long it takes on an instance, times the number of the instance from 0; 0 for the
 *     same time on all of them
 * @param creationNanos how long a load takes at least, in nanoseconds
 */
record IdentityDelays(long executionNanos, long multiplier, long creationNanos) {
    static final IdentityDelays NONE = new IdentityDelays(0, 0, 0);

    private static final String EXECUTION = "execute_delay_ms";
    private static final String MULTIPLIER = "instance_wise_delay_multiplier";
    private static final String CREATION = "creation_delay_sec";

    static IdentityDelays of(Parameters parameters) {
        return new IdentityDelays(
                nanos(parameters, EXECUTION, TimeUnit.MILLISECONDS),
                parameters.longInteger(MULTIPLIER, 0, Long.MAX_VALUE).orElse(0),
                nanos(parameters, CREATION, TimeUnit.SECONDS));
    }

    private static long nanos(Parameters parameters, String name, TimeUnit unit) {
        return parameters.duration(name, unit).orElse(Duration.ZERO).toNanos();
    }

    /**
     * Returns how long an execution of an instance takes at least.
     *
     * @param instance the number of the instance, from 0
     */
    long executionNanos(int instance) {
        long times = Math.max(1, multiplier == 0 ? 1 : saturated(multiplier, instance));
        return saturated(executionNanos, times);
    }

    /** Returns a product of numbers that are not negative; the largest number where it is larger. */
    private static long saturated(long a, long b) {
        return Math.multiplyHigh(a, b) == 0 && a * b >= 0 ? a * b : Long.MAX_VALUE;
    }

    /** Waits, unless the thread is interrupted. */
    static void await(long nanos, LongSupplier nanoTime, String what) {
        long start = nanoTime.getAsLong();
        for (long left = nanos; left > 0; left = nanos - (nanoTime.getAsLong() - start)) {
            if (Thread.currentThread().isInterrupted()) {
                throw new BackendException(ErrorCode.UNAVAILABLE, what + " was interrupted");
            }
            LockSupport.parkNanos(left);
        }
    }
}
