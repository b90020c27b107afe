package dev.nereid.scheduler.request;

/** Removes one request from the queue in which it waits. Safe for use by any thread. */
public interface QueuePosition {
    /** Removes the request, if it waits there. */
    void leave();
}
