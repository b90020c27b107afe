package dev.nereid.scheduler.time;

/** A timeout that may be scheduled repeatedly. Safe for use by any thread; no method blocks. */
public interface Timeout extends AutoCloseable {
    /**
     * Has the alarm ring at a moment, unless it is set to an earlier one. Once it has rung it is not set any more. A
     * moment that has passed rings at once, on the timer's thread.
     *
     * @param dueNanos the moment, on the scale of {@link System#nanoTime()}, within 140 years of those of other alarms
     */
    void scheduleAtLatest(long dueNanos);

    /** Lets the alarm never ring again; an action that runs already goes on. Closing twice is of no effect. */
    @Override
    void close();
}
