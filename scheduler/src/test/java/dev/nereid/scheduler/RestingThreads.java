package dev.nereid.scheduler;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.scheduler.time.Watchdog;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** Ends the threads of instances at every moment at which these have no work, as a watchdog does after a minute. */
final class RestingThreads implements AutoCloseable {
    private static final long LATER = TimeUnit.MINUTES.toNanos(2);

    private final TimeoutQueue timeouts = new TimeoutQueue(() -> {});
    private final Watchdog watchdog = new Watchdog(timeouts, () -> System.nanoTime() + LATER);
    private volatile boolean closed;
    private final Thread thread = Thread.ofPlatform().start(this::run);

    /** Returns the services for schedulers whose threads end. */
    Supervision supervision() {
        return new Supervision(FatalErrorHandler.NONE, Optional.of(watchdog), Duration.ZERO, Duration.ZERO, 1, false);
    }

    private void run() {
        while (!closed) {
            timeouts.runExpired(System.nanoTime() + LATER + Watchdog.INTERVAL_NANOS);
            Thread.onSpinWait();
        }
    }

    @Override
    public void close() {
        closed = true;
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        watchdog.close();
    }
}
