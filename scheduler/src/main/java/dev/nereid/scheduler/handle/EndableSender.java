package dev.nereid.scheduler.handle;

import dev.nereid.spi.ResponseSender;

/** A sender that the server ends when its plugin has forgotten it. Safe for use by any thread. */
public interface EndableSender extends ResponseSender {
    void retainHandle();

    /**
     * Removes a handle that the plugin can not reach any more. Never blocks.
     *
     * @return whether {@link #forgotten} has something to do: it was the last one
     */
    boolean releaseHandle();

    /** Returns whether {@link #forgotten} has something to do now. Never blocks. */
    boolean needsEnd();

    /**
     * Ends the sender and fails its request, unless it is ended. Discards the open responses: nothing reaches them any
     * more.
     *
     * @param report called once the sender is ended by this call, before its request fails
     */
    void forgotten(Runnable report);
}
