package dev.nereid.api;

/** Cancels a request. Safe for use by any thread. */
public interface Cancellation {
    /**
     * Withdraws the call: if it was not answered yet it is answered with
     * {@link dev.nereid.spi.ErrorCode#CANCELLED}, at once if it still waits, otherwise when its execution notices or
     * ends. Later calls do nothing.
     */
    void cancel();
}
