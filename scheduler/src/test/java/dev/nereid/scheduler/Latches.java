package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Waits in fakes, whose threads may be interrupted meanwhile. */
public final class Latches {
    private static final long LONGEST = Duration.ofSeconds(30).toNanos();

    private Latches() {}

    /**
     * Waits until a latch is open, and is interrupted afterwards if that came meanwhile; fails if it takes too long.
     */
    public static void await(CountDownLatch latch) {
        long end = System.nanoTime() + LONGEST;
        boolean interrupted = false;
        boolean open = false;
        while (!open && end - System.nanoTime() > 0) {
            try {
                open = latch.await(end - System.nanoTime(), TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        assertThat(open).as("the latch is open").isTrue();
    }
}
