package dev.nereid.scheduler.queue;

/**
 * The time at which something that waits expires, such as a request with a deadline or a timeout. Confined to the lock of
 * the queue until it is removed from the heap; then to the thread that rejects the request.
 *
 * @param <T> what waits
 */
public final class Deadline<T> {
    /** Sentinel: no deadline. Later deadlines count as none, so that comparisons never overflow; 73 years. */
    public static final long NEVER = Long.MAX_VALUE / 4;

    /** The kind of a deadline. */
    public enum Cause {
        /** The deadline set by the client. */
        DEADLINE,
        /** The timeout of the queue policy. */
        TIMEOUT
    }

    private final T waiting;
    private final Cause cause;
    private final long nanos;

    /** The index in the heap; maintained by the heap, below 0 outside of it. */
    int index = -1;

    /** Creates a deadline; {@code nanos} is the first nanosecond at which it is expired, on the scale of the clock. */
    public Deadline(T waiting, Cause cause, long nanos) {
        this.waiting = waiting;
        this.cause = cause;
        this.nanos = nanos;
    }

    /** Returns what waits. */
    public T waiting() {
        return waiting;
    }

    Cause cause() {
        return cause;
    }

    public long nanos() {
        return nanos;
    }

    public boolean isPast(long nowNanos) {
        return nowNanos - nanos >= 0;
    }

    /** Returns whether this deadline is earlier than another. */
    boolean isBefore(Deadline<?> other) {
        return nanos - other.nanos < 0;
    }
}
