package dev.nereid.api;

/**
 * Who is told the responses to one call. Implemented by front ends and embedding programs.
 *
 * <p>Called on whichever thread completes a response, one call at a time, never under a lock of the server. Methods
 * must not block and should hand over work of any length; except that {@link #onResponse} may hold back the thread of a
 * decoupled model that is far ahead of its client, for a while, if that thread is not one of an event loop. Exactly one call is terminal: {@link #onResponse} with
 * {@link InferResponse#isLast()}, {@link #onEnd}, or {@link #onError}; none follows it. What an observer throws is
 * logged and otherwise ignored.
 */
public interface ResponseObserver {
    /**
     * Notes that the call passed every check and waits for its execution: an error from now on is that of a call that
     * failed, not of one that was refused. Called at most once, before {@link InferenceServer#infer} returns and on the
     * thread that called it; before the outcome if that comes on the same thread, otherwise the two may meet. Does nothing
     * by default.
     */
    default void onAccepted() {}

    /**
     * Takes a response.
     *
     * @param response the response, owned by the observer, which closes it when its memory was read
     */
    void onResponse(InferResponse response);

    /**
     * Ends the call: a decoupled model has no more responses to give. Never called for other models.
     */
    void onEnd();

    /**
     * Ends the call with an error.
     *
     * @param error what went wrong
     */
    void onError(InferenceException error);
}
