package dev.nereid.scheduler.time;

/** Creates timeouts. Safe for use by any thread. */
public interface Timer {
    /**
     * Creates a timeout that is not scheduled.
     *
     * @param action runs whenever the timeout fires, on the timer's thread, one action at a time. It must be short and
     *     never block; it may schedule timeouts. Its exceptions are logged
     * @return the timeout, closed by the caller
     */
    Timeout newTimeout(Runnable action);
}
