package dev.nereid.api;

/**
 * Says whether the receiver of responses reads them. Safe for use by any thread; never blocks, and never throws.
 *
 * <p>A flow is open as long as further responses would be sent soon. It is closed while so many wait for the client
 * that more of them would only take memory. Responses are accepted all the same, up to limits that end the request: a
 * flow is advice, which lets a model pause in time. It is open for ever once the receiver is gone, so that nothing
 * waits for it.
 */
public interface ResponseFlow {
    /** The flow of a receiver that is always ready. */
    ResponseFlow OPEN = new ResponseFlow() {
        @Override
        public boolean isOpen() {
            return true;
        }

        @Override
        public void whenOpen(Runnable action) {
            action.run();
        }
    };

    /**
     * Says whether the receiver reads its responses.
     *
     * @return whether further responses would be sent soon, or the receiver is gone
     */
    boolean isOpen();

    /**
     * Runs an action once: now if the flow is open, otherwise when it opens or the receiver is gone. Replaces an
     * earlier action that has not run, so a flow has one user, which is the server once a request was submitted. The
     * flow may be closed again when the action runs.
     *
     * @param action the action; runs on any thread, also on an event loop and on that of the caller, never under a
     *     lock. It must be short, must not block, and must not throw
     */
    void whenOpen(Runnable action);
}
