package dev.nereid.api;

/**
 * Receives the responses to one request. Implemented by front ends and embedding programs.
 *
 * <p>Called on whichever thread completes a response, one call at a time, never under a lock of the server. Methods
 * return quickly and never block: the thread is that of a model's instance, which all its clients share, or an event
 * loop. Work of any length is handed over, and whoever cannot keep up with a decoupled model withdraws the call.
 * Exactly one call is terminal: {@link #onResponse} with {@link InferResponse#isFinal()}, {@link #onCompleted},
 * {@link #onError}, or {@link #onRefused}; none follows it. What an observer throws is logged and otherwise ignored.
 */
public interface ResponseObserver {
    /**
     * Takes a response.
     *
     * @param response the response, owned by the observer, which closes it when its memory was read
     */
    void onResponse(InferResponse response);

    /**
     * Takes a failed response of a decoupled model: the call goes on, and other responses may follow. Never called for
     * other models. Does nothing by default: an observer that wraps another one has to forward it, or the client never
     * hears of it.
     *
     * @param error what went wrong with this response
     */
    default void onFailedResponse(InferenceException error) {}

    /**
     * Ends the call: a decoupled model has no more responses to give. Never called for other models.
     */
    void onCompleted();

    /**
     * Ends the call with an error.
     *
     * @param error what went wrong
     */
    void onError(InferenceException error);

    /**
     * Ends a call that was refused: it is wrong, or the server does not take it, and it was never queued. Called in place
     * of {@link #onError}, and by default the same; for front ends whose protocol tells the two apart. Called by the
     * thread that called {@link InferenceServer#infer}, before that returns, unless the inputs are so large that another
     * thread checks them.
     *
     * @param error what is wrong
     */
    default void onRefused(InferenceException error) {
        onError(error);
    }

    /**
     * Returns how the request came, for metrics.
     *
     * @return the protocol; that of embedding programs by default
     */
    default RequestProtocol protocol() {
        return RequestProtocol.EMBEDDED;
    }
}
