package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import org.jspecify.annotations.Nullable;

/**
 * Sets the timeout of a queue to its earliest deadline.
 *
 * <p>Whoever brings an earlier moment finds that out by {@link #reserve} under the lock of the queue, and sets the
 * alarm by {@link #schedule} after it gave the lock back: an alarm rings at the earliest moment that it was told, so it
 * does not matter who comes first.
 */
final class DeadlineTimer {
    private final Timeout timeout;

    /** Whether somebody sets the alarm, or did so and it has not rung; guarded by the lock of the queue. */
    private boolean reserved;

    /** To which moment, if so; guarded by the lock of the queue. */
    private long nanos;

    /**
     * Takes an alarm.
     *
     * @param ring handles what is due, and calls {@link #onTimeout} first
     */
    DeadlineTimer(Timer timer, Runnable ring) {
        this.timeout = timer.newTimeout(ring);
    }

    /**
     * Says whether the caller has to set the alarm. With the lock.
     *
     * @param next what is due next; {@code null} for nothing
     * @return what to {@link #schedule} the alarm to, {@code null} if it is set
     */
    @Nullable
    Deadline reserve(@Nullable Deadline next) {
        if (next == null || (reserved && next.nanos() - nanos >= 0)) {
            return null;
        }
        reserved = true;
        nanos = next.nanos();
        return next;
    }

    /** Sets the alarm to what was claimed. Without the lock. */
    void schedule(@Nullable Deadline due) {
        if (due != null) {
            timeout.scheduleAtLatest(due.nanos());
        }
    }

    /** Takes note that the alarm rings. With the lock. */
    void onTimeout() {
        reserved = false;
    }

    /** Gives the alarm back. */
    void close() {
        timeout.close();
    }
}
