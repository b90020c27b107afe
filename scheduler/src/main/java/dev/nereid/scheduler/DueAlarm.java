package dev.nereid.scheduler;

import dev.nereid.scheduler.time.Alarm;
import dev.nereid.scheduler.time.Timer;
import org.jspecify.annotations.Nullable;

/**
 * The alarm of a queue, set to the earliest moment at which the time of a request is over, or earlier.
 *
 * <p>Whoever brings an earlier moment finds that out by {@link #claim} under the lock of the queue, and sets the alarm
 * by {@link #set} after it gave the lock back: an alarm rings at the earliest moment that it was told, so it does not
 * matter who comes first.
 */
final class DueAlarm {
    private final Alarm alarm;

    /** Whether somebody sets the alarm, or did so and it has not rung; guarded by the lock of the queue. */
    private boolean claimed;

    /** To which moment, if so; guarded by the lock of the queue. */
    private long nanos;

    /**
     * Takes an alarm.
     *
     * @param ring handles what is due, and calls {@link #rung} first
     */
    DueAlarm(Timer timer, Runnable ring) {
        this.alarm = timer.alarm(ring);
    }

    /**
     * Says whether the caller has to set the alarm. With the lock.
     *
     * @param next what is due next; {@code null} for nothing
     * @return what to {@link #set} the alarm to, {@code null} if it is set
     */
    @Nullable
    Due claim(@Nullable Due next) {
        if (next == null || (claimed && next.nanos() - nanos >= 0)) {
            return null;
        }
        claimed = true;
        nanos = next.nanos();
        return next;
    }

    /** Sets the alarm to what was claimed. Without the lock. */
    void set(@Nullable Due due) {
        if (due != null) {
            alarm.atLatest(due.nanos());
        }
    }

    /** Takes note that the alarm rings. With the lock. */
    void rung() {
        claimed = false;
    }

    /** Gives the alarm back. */
    void close() {
        alarm.close();
    }
}
