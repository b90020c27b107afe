package dev.nereid.scheduler.queue;

import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.request.IndependentCalls;
import dev.nereid.scheduler.request.SchedulerErrors;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The deadline or timeout of a waiting request. Confined to the lock of its queue until it is removed from the heap;
 * then to the thread that rejects the request.
 */
final class Deadline {
    private static final Logger LOG = LoggerFactory.getLogger(Deadline.class);

    /** Sentinel: no deadline. Later deadlines count as none, so that comparisons never overflow; 73 years. */
    static final long NEVER = Long.MAX_VALUE / 4;

    /** The kind of a deadline. */
    enum Cause {
        /** The deadline set by the client. */
        DEADLINE,
        /** The timeout of the queue policy. */
        TIMEOUT
    }

    private final QueueEntry entry;
    private final Cause cause;
    private final long nanos;

    /** The index in the heap; maintained by the heap. */
    int index;

    /**
     * Creates a deadline.
     *
     * @param nanos the first nanosecond at which the request is expired, on the scale of the clock
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

    boolean isPast(long nowNanos) {
        return nowNanos - nanos >= 0;
    }

    /** Returns whether this deadline is earlier than another. */
    boolean isBefore(Deadline other) {
        return nanos - other.nanos < 0;
    }

    /** Rejects and removes all requests of a list. An exception of one request does not keep the others. */
    static void rejectAll(List<Deadline> expired) {
        try {
            IndependentCalls.forEach(expired, Deadline::rejectQuietly);
        } finally {
            expired.clear();
        }
    }

    private void rejectQuietly() {
        try {
            rejectRequest();
        } catch (RuntimeException e) {
            LOG.atError().setCause(e).log("request not rejected");
        }
    }

    void rejectRequest() {
        switch (cause) {
            case DEADLINE -> entry.request().reject(SchedulerErrors.cancelled(), FailureReason.CANCELED);
            case TIMEOUT -> entry.request().reject(SchedulerErrors.timedOut(), FailureReason.REJECTED);
        }
    }
}
