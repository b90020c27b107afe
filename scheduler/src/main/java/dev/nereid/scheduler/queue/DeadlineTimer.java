package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import org.jspecify.annotations.Nullable;

/**
 * Sets the timeout of a queue to its earliest deadline.
 *
 * <p>A thread that adds an earlier deadline calls {@link #reserve} under the lock of the queue, and {@link #schedule}
 * after the release of the lock. A timeout fires at the earliest time scheduled, so the order of threads does not
 * matter.
 */
final class DeadlineTimer {
    private final Timeout timeout;

    /**
     * {@code true} if a thread schedules the timeout, or did so and it has not fired. Guarded by the lock of the queue.
     */
    private boolean reserved;

    /** The time of that schedule, if any; guarded by the lock of the queue. */
    private long nanos;

    /** {@code true} if a schedule has failed, so that the next deadline is scheduled in any case. */
    private volatile boolean failed;

    /**
     * Creates a timeout.
     *
     * @param action handles expired requests, and calls {@link #onTimeout} first
     */
    DeadlineTimer(Timer timer, Runnable action) {
        this.timeout = timer.newTimeout(action);
    }

    /**
     * Returns whether the caller has to schedule the timeout. The caller holds the lock.
     *
     * @param next the earliest deadline; {@code null} for none
     * @return the deadline to pass to {@link #schedule}; {@code null} if it is scheduled already
     */
    @Nullable
    Deadline reserve(@Nullable Deadline next) {
        if (next == null || (reserved && !failed && next.nanos() - nanos >= 0)) {
            return null;
        }
        failed = false;
        reserved = true;
        nanos = next.nanos();
        return next;
    }

    /** Schedules the timeout to the result of {@link #reserve}. The caller does not hold the lock. */
    void schedule(@Nullable Deadline deadline) {
        if (deadline == null) {
            return;
        }
        boolean scheduled = false;
        try {
            timeout.scheduleAtLatest(deadline.nanos());
            scheduled = true;
        } finally {
            if (!scheduled) {
                failed = true;
            }
        }
    }

    /** Records that the timeout fired. The caller holds the lock. */
    void onTimeout() {
        reserved = false;
    }

    void close() {
        timeout.close();
    }
}
