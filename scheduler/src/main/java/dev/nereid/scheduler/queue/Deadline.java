package dev.nereid.scheduler.queue;

import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.request.SchedulerErrors;

/**
 * The deadline or time-out of a waiting request. Confined to the lock of its queue until it is taken off the heap; then
 * to whoever answers the request.
 */
final class Deadline {
    /** Later than anybody waits: 73 years. Moments beyond count as none, so that comparing them never overflows. */
    static final long NEVER = Long.MAX_VALUE / 4;

    /** The kind of a deadline. */
    enum Cause {
        /** The time that its client waits. */
        DEADLINE,
        /** The time that it may wait in the queue. */
        TIMEOUT
    }

    private final QueueEntry entry;
    private final Cause cause;
    private final long nanos;

    /** The place in the heap; kept by the heap. */
    int index;

    /**
     * Makes a moment.
     *
     * @param entry the request
     * @param cause what is over then
     * @param nanos the first nanosecond after its time, on the scale of the clock
     */
    Deadline(QueueEntry entry, Cause cause, long nanos) {
        this.entry = entry;
        this.cause = cause;
        this.nanos = nanos;
    }

    QueueEntry entry() {
        return entry;
    }

    Cause cause() {
        return cause;
    }

    long nanos() {
        return nanos;
    }

    /** Says whether the moment has come. */
    boolean isPast(long nowNanos) {
        return nowNanos - nanos >= 0;
    }

    /** Says whether the moment comes before another. */
    boolean isBefore(Deadline other) {
        return nanos - other.nanos < 0;
    }

    /** Tells the client that the time is over, unless the request was answered. */
    void rejectRequest() {
        switch (cause) {
            case DEADLINE -> entry.request().reject(SchedulerErrors.cancelled(), FailureReason.CANCELED);
            case TIMEOUT -> entry.request().reject(SchedulerErrors.timedOut(), FailureReason.REJECTED);
        }
    }
}
