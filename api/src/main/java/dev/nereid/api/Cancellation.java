package dev.nereid.api;

/** Cancels a request. Safe for use by any thread. */
public interface Cancellation {
    /**
     * Cancels the request. If it has no terminal response yet, it gets the error {@link
     * dev.nereid.spi.ErrorCode#CANCELLED}: at once while it waits in the queue, otherwise when its execution notices or
     * ends. Later calls do nothing.
     */
    void cancel();
}
