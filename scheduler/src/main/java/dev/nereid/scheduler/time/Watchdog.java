package dev.nereid.scheduler.time;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.FatalErrorHandler;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs all registered checks once a second. Safe for use by any thread. The timeout is scheduled while there are
 * checks.
 */
public final class Watchdog implements AutoCloseable {
    public static final long INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** A check for operations that take too long. */
    @FunctionalInterface
    public interface Watched {
        /**
         * Checks whether an operation takes too long. Called by one thread at a time; must be short and never block.
         *
         * @param nowNanos the time, on the scale of {@link System#nanoTime()}
         */
        void check(long nowNanos);
    }

    private static final Logger LOG = LoggerFactory.getLogger(Watchdog.class);

    private final LongSupplier nanoTime;
    private final FatalErrorHandler fatalErrors;
    private final Timeout timeout;
    private final List<Watched> watched = new CopyOnWriteArrayList<>();

    /** Creates a watchdog without checks, which the timer runs. */
    public Watchdog(Timer timer, LongSupplier nanoTime) {
        this(timer, nanoTime, FatalErrorHandler.NONE);
    }

    /**
     * Creates a watchdog without checks.
     *
     * @param timer runs the checks
     * @param fatalErrors notified if the next checks cannot be scheduled, as of the end of a thread named {@code watchdog}
     */
    public Watchdog(Timer timer, LongSupplier nanoTime, FatalErrorHandler fatalErrors) {
        this.nanoTime = requireNonNull(nanoTime, "nanoTime");
        this.fatalErrors = requireNonNull(fatalErrors, "fatalErrors");
        timeout = timer.newTimeout(this::check);
    }

    public void add(Watched added) {
        watched.add(requireNonNull(added, "added"));
        schedule();
    }

    /** Removes a check that was added. A check in progress goes on. */
    public void remove(Watched removed) {
        watched.remove(removed);
    }

    private void schedule() {
        timeout.scheduleAtLatest(nanoTime.getAsLong() + INTERVAL_NANOS);
    }

    private void check() {
        try {
            for (Watched each : watched) {
                check(each);
            }
        } finally {
            scheduleNext();
        }
    }

    private void scheduleNext() {
        boolean scheduled = watched.isEmpty();
        try {
            if (!scheduled) {
                schedule();
                scheduled = true;
            }
        } finally {
            if (!scheduled) {
                fatalErrors.onThreadEnded("watchdog");
            }
        }
    }

    private void check(Watched checked) {
        try {
            checked.check(nanoTime.getAsLong());
        } catch (RuntimeException e) { // an error reaches the queue of timeouts, which reports it and runs on
            LOG.atError().setCause(e).log("check of watchdog failed");
        }
    }

    @Override
    public void close() {
        watched.clear();
        timeout.close();
    }
}
