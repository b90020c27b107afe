package dev.nereid.distribution.testing;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * Polls for a state without a notification, for a bounded time. An example is memory that is released after a response.
 */
public final class Eventually {
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private Eventually() {}

    public static void holds(String description, long seconds, BooleanSupplier state) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        while (!state.getAsBoolean()) {
            if (System.nanoTime() - end > 0) {
                throw new AssertionError(description + ": not within " + seconds + " s");
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }
}
