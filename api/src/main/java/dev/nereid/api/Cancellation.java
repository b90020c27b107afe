package dev.nereid.api;

/** Cancels a request. Safe for use by any thread. */
public interface Cancellation {
    /** Does nothing, for there is no request to cancel. */
    Cancellation NONE = () -> {};

    /**
     * Cancels the request. If it has no terminal response yet, it gets the error {@link
     * dev.nereid.spi.ErrorCode#CANCELLED}: at once while it waits in the queue, otherwise when its execution notices or
     * ends. Later calls do nothing.
     */
    void cancel();
}
