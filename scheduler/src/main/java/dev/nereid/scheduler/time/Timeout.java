package dev.nereid.scheduler.time;

/** A timeout that may be scheduled repeatedly. Safe for use by any thread; no method blocks. */
public interface Timeout extends AutoCloseable {
    /**
     * Schedules the timeout, unless it is scheduled to an earlier time. Once it has fired it is not scheduled any more.
     * A deadline that has passed fires at once, on the timer's thread.
     *
     * @param deadlineNanos when to fire, on the scale of {@link System#nanoTime()}, within 140 years of the deadlines
     *     of other timeouts
     */
    void scheduleAtLatest(long deadlineNanos);

    /** Closes the timeout: it never fires again, but an action that runs already goes on. Idempotent. */
    @Override
    void close();
}
