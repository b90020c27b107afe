package dev.nereid.scheduler.time;

/** Creates timeouts. Safe for use by any thread. */
public interface Timer {
    /**
     * Makes an alarm that is not set.
     *
     * @param action what to do whenever it rings; runs on the timer's thread, one action at a time. It must be short
     *     and never block; it may set alarms. What it throws is logged
     * @return the alarm, to be closed by the caller
     */
    Timeout newTimeout(Runnable action);
}
