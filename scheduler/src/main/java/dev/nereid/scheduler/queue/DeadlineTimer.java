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
public final class DeadlineTimer {
    private final Timeout timeout;

    /** {@code true} if a thread schedules or scheduled the timeout, until it fires. Guarded by the queue's lock. */
    private boolean reserved;

    /** The time of that schedule, if any; guarded by the lock of the queue. */
    private long nanos;

    /** {@code true} if a schedule has failed, so that the next deadline is scheduled in any case. */
    private volatile boolean failed;

    /** Creates a timeout. The action handles expired requests, and calls {@link #onTimeout} first. */
    public DeadlineTimer(Timer timer, Runnable action) {
        this.timeout = timer.newTimeout(action);
    }

    /**
     * Returns whether the caller has to {@linkplain #schedule(long) schedule} the timeout. The caller holds the lock.
     *
     * @param next the earliest deadline, in nanoseconds
     */
    public boolean reserve(long next) {
        if (reserved && !failed && next - nanos >= 0) {
            return false;
        }
        failed = false;
        reserved = true;
        nanos = next;
        return true;
    }

    /**
     * Returns whether the caller has to schedule the timeout, as {@link #reserve(long)} does.
     *
     * @param next the earliest deadline; {@code null} for none
     * @return the deadline to pass to {@link #schedule(Deadline)}; {@code null} if it is scheduled already
     */
    @Nullable
    Deadline<QueueEntry> reserve(@Nullable Deadline<QueueEntry> next) {
        return next != null && reserve(next.nanos()) ? next : null;
    }

    /** Schedules the timeout to the result of {@link #reserve(Deadline)}. The caller does not hold the lock. */
    void schedule(@Nullable Deadline<QueueEntry> deadline) {
        if (deadline != null) {
            schedule(deadline.nanos());
        }
    }

    /** Schedules the timeout to a {@linkplain #reserve(long) reserved} time. The caller does not hold the lock. */
    public void schedule(long reservedNanos) {
        boolean scheduled = false;
        try {
            timeout.scheduleAtLatest(reservedNanos);
            scheduled = true;
        } finally {
            if (!scheduled) {
                failed = true;
            }
        }
    }

    /** Records that the timeout fired. The caller holds the lock. */
    public void onTimeout() {
        reserved = false;
    }

    public void close() {
        timeout.close();
    }
}
