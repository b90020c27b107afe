package dev.nereid.cuda;

import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;

/**
 * Waits for what can only be asked for: asks without pause at first, then with pauses. Immutable; safe for use by any
 * thread.
 *
 * <p>The driver's own waits are as late as this (blocking) or occupy a processor (spinning).
 */
final class PollingWait {
    /** How long it asks without pause: about what short work and the copy of a small tensor take. */
    static final long SPIN_NANOS = 10_000;

    /** The requested pause; the kernel makes it some 50 µs unless the thread's timer slack is smaller. */
    static final long PAUSE_NANOS = 1_000;

    private final LongSupplier clock;
    private final LongConsumer pause;

    /** Creates it with another clock, of nanoseconds, and a pause that waits for some nanoseconds, or less. */
    PollingWait(LongSupplier clock, LongConsumer pause) {
        this.clock = clock;
        this.pause = pause;
    }

    /** Returns one with the time of the system. */
    static PollingWait system() {
        return new PollingWait(System::nanoTime, LockSupport::parkNanos);
    }

    /** Waits, asking on this thread, at least once, for {@code timeoutNanos}; returns whether it was done by then. */
    boolean until(BooleanSupplier done, long timeoutNanos) {
        long start = clock.getAsLong();
        while (!done.getAsBoolean()) {
            long waited = clock.getAsLong() - start;
            if (waited >= timeoutNanos) {
                return false;
            }
            if (waited < SPIN_NANOS) {
                Thread.onSpinWait();
            } else {
                pause.accept(Math.min(PAUSE_NANOS, timeoutNanos - waited));
            }
        }
        return true;
    }
}
