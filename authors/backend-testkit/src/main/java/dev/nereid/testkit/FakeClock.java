package dev.nereid.testkit;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * A clock that only a test advances. Safe for use by any thread.
 *
 * <p>It starts close to the overflow of {@code long}, as {@link System#nanoTime()} may: code that compares readings
 * instead of subtracting them fails with it.
 */
public final class FakeClock implements LongSupplier {
    private static final long START = Long.MAX_VALUE - Duration.ofMillis(1).toNanos();

    private final AtomicLong nanos = new AtomicLong(START);

    /** Creates a clock that shows one millisecond before the overflow. */
    public FakeClock() {}

    /**
     * Returns the time as {@link System#nanoTime()} would.
     *
     * @return nanoseconds since some moment
     */
    @Override
    public long getAsLong() {
        return nanos.get();
    }

    /**
     * Advances the time.
     *
     * @param passed the duration, not negative
     */
    public void advance(Duration passed) {
        advanceNanos(passed.toNanos());
    }

    /**
     * Advances the time.
     *
     * @param passed the duration in nanoseconds, not negative
     */
    public void advanceNanos(long passed) {
        if (passed < 0) {
            throw new IllegalArgumentException("passed: " + passed + " (expected: >= 0)");
        }
        nanos.addAndGet(passed);
    }
}
