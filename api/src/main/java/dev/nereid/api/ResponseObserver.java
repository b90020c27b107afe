package dev.nereid.api;

/**
 * Receives the responses to one request. Implemented by front ends and embedding programs.
 *
 * <p>Called on the thread that completes a response, one call at a time, never under a lock of the server. Methods
 * return quickly and never block: the thread is that of a model's instance, which all its clients share, or an event
 * loop. Longer work goes to another thread, and an observer that cannot keep up with a decoupled model closes its
 * {@link #flow}, and cancels the request if the model goes on nevertheless. Exactly one call is terminal: {@link #onResponse} with {@link InferResponse#isFinal()}, {@link
 * #onCompleted}, {@link #onError}, or {@link #onRefused}; none follows it. Exceptions of an observer are logged and
 * otherwise ignored. Observers that wrap another one extend {@link ForwardingObserver}.
 */
public interface ResponseObserver {
    /**
     * Receives a response.
     *
     * @param response the response, owned by the observer, which closes it after reading its memory
     */
    void onResponse(InferResponse response);

    /**
     * Receives a failed response of a decoupled model. The request continues, and other responses may follow. Never
     * called for other models. Does nothing by default.
     *
     * @param error the error of this response
     */
    default void onFailedResponse(InferenceException error) {}

    /**
     * Ends the request: a decoupled model has no more responses. Never called for other models.
     */
    void onCompleted();

    /**
     * Ends the request with an error.
     *
     * @param error the error
     */
    void onError(InferenceException error);

    /**
     * Ends a request that was refused. It is invalid, or the server does not accept it, and it was never queued. Called
     * in place of {@link #onError}, and by default the same; for front ends with a protocol that distinguishes the two.
     * Called by the thread that called {@link InferenceServer#infer}, before that returns, unless another thread checks
     * the inputs, since they are large, or the request has waited for the load of its model.
     *
     * @param error the error
     */
    default void onRefused(InferenceException error) {
        onError(error);
    }

    /**
     * Says whether the observer works long on a response, such as a millisecond. Its request is then executed on the
     * thread of an instance, and not on the submitting thread.
     *
     * @return {@code false} by default
     */
    default boolean isLong() {
        return false;
    }

    /**
     * Returns the protocol of the request, for metrics.
     *
     * @return the protocol; that of embedding programs by default
     */
    default RequestProtocol protocol() {
        return RequestProtocol.EMBEDDED;
    }

    /**
     * Returns the flow of responses, by which a decoupled model pauses for a client that reads slowly. Called on any
     * thread. The server alone registers actions with the flow of an observer that it was given.
     *
     * @return the flow, always the same; always open by default
     */
    default ResponseFlow flow() {
        return ResponseFlow.OPEN;
    }
}
