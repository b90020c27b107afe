package dev.nereid.attacks;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Waits, for a time or for a condition of another process. Stateless. */
final class Await {
    private static final Duration STEP = Duration.ofMillis(20);

    private Await() {}

    /** Waits for so long; an interrupt ends the wait, and stays set. */
    static void pause(Duration time) {
        long end = System.nanoTime() + time.toNanos();
        for (long left = time.toNanos(); left > 0; left = end - System.nanoTime()) {
            if (Thread.currentThread().isInterrupted()) {
                return;
            }
            LockSupport.parkNanos(left);
        }
    }

    /** Waits until something holds, but not for longer than a time. Returns whether it does. */
    static boolean holds(Duration atMost, BooleanSupplier condition) {
        long end = System.nanoTime() + atMost.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - end > 0 || Thread.currentThread().isInterrupted()) {
                return condition.getAsBoolean();
            }
            pause(STEP);
        }
        return true;
    }

    /** Waits until something holds, and fails if it does not within a time. */
    static void until(String state, Duration atMost, BooleanSupplier condition) {
        if (!holds(atMost, condition)) {
            throw new AssertionError(state + ": not within " + atMost.toSeconds() + " s");
        }
    }
}
