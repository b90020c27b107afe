package dev.nereid.distribution.testing;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * Waits for a state that nobody announces, such as memory that was given back behind an answer: looks again and again,
 * for a bounded time.
 */
public final class Eventually {
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private Eventually() {}

    public static void holds(String what, long seconds, BooleanSupplier state) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        while (!state.getAsBoolean()) {
            if (System.nanoTime() - end > 0) {
                throw new AssertionError(what + ": not within " + seconds + " s");
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }
}
