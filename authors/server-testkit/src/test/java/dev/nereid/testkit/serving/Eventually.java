package dev.nereid.testkit.serving;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Polls for a state without a notification, for a bounded time. */
final class Eventually {
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long TIMEOUT_SECONDS = 30;

    private Eventually() {}

    static void holds(String description, BooleanSupplier state) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
        while (!state.getAsBoolean()) {
            if (System.nanoTime() - end > 0) {
                throw new AssertionError(description + ": not within " + TIMEOUT_SECONDS + " s");
            }
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }
}
