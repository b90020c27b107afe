package dev.nereid.scheduler.time;

import dev.nereid.api.FatalErrorHandler;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * A timer with one thread, named {@code timer}. Safe for use by any thread.
 *
 * <p>No wake-up is lost: a thread that schedules an earlier timeout or closes the timer unparks the timer thread
 * afterwards, and an unpark before the park prevents the park.
 */
public final class TimerThread implements Timer, AutoCloseable {
    private final LongSupplier nanoTime;
    private final TimeoutQueue timeouts;
    private final FatalErrorHandler fatalErrors;
    private final Thread thread;
    private volatile boolean closed;

    /**
     * Starts the thread.
     *
     * @param nanoTime the clock, on the scale of {@link System#nanoTime()} and as fast
     */
    public TimerThread(LongSupplier nanoTime) {
        this(nanoTime, FatalErrorHandler.NONE);
    }

    /**
     * Starts the thread.
     *
     * @param nanoTime the clock, on the scale of {@link System#nanoTime()} and as fast
     * @param fatalErrors notified of fatal errors of actions, and if the thread ends before it is closed
     */
    public TimerThread(LongSupplier nanoTime, FatalErrorHandler fatalErrors) {
        this.nanoTime = nanoTime;
        this.fatalErrors = fatalErrors;
        this.thread = Thread.ofPlatform().name("timer").daemon(true).unstarted(this::run);
        this.timeouts = new TimeoutQueue(() -> LockSupport.unpark(thread), fatalErrors);
        thread.start();
    }

    @Override
    public Timeout newTimeout(Runnable action) {
        return timeouts.newTimeout(action);
    }

    private void run() {
        try {
            serve();
        } finally {
            if (!closed) {
                fatalErrors.onThreadEnded(thread.getName());
            }
        }
    }

    private void serve() {
        while (!closed) {
            long now = nanoTime.getAsLong();
            long pause = timeouts.runExpired(now);
            long rest = pause == Long.MAX_VALUE ? pause : pause - (nanoTime.getAsLong() - now);
            if (rest > 0 && !closed) { // again: an action, or the wait for a lock, may have used the permit of a close
                LockSupport.parkNanos(this, rest);
            }
        }
    }

    /** Ends the thread, after the current action. Waits for that; must not be called by an action. */
    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
