package dev.nereid.scheduler;

/** Removes one request from the queue in which it waits. Safe for use by any thread. */
interface QueuePosition {
    /** Removes the request, if it waits. */
    void leave();
}
