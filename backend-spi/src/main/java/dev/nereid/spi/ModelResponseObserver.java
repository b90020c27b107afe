package dev.nereid.spi;

/**
 * Receives the responses of another model. <em>Implemented by backends.</em>
 *
 * <p>Called on threads of the server, one call at a time: methods return quickly and never block. Exactly one call is
 * terminal, {@link #onCompleted}, {@link #onError} or {@link #onRefused}. An exception of a method is logged; one of {@link #onResponse}
 * cancels the request. An observer that cancels by {@link ModelRequest#cancel} is given the request by its creator.
 *
 * @since 1.0
 */
public interface ModelResponseObserver {
    /**
     * Receives a response.
     *
     * @param response the response, owned by the observer, which closes it
     */
    void onResponse(ModelResponse response);

    /**
     * Receives a failed response of a decoupled model, after which others may follow. Does nothing by default.
     *
     * @param error the error of this response
     */
    default void onFailedResponse(BackendException error) {}

    /** Ends the request: no more responses follow. */
    void onCompleted();

    /**
     * Ends the request with an error.
     *
     * @param error the error
     */
    void onError(BackendException error);

    /**
     * Ends a request that was refused. It is invalid, or the server or the model does not accept it, and it was never
     * queued. Called in place of {@link #onError}, and by default the same. For backends that pass on errors of other
     * models, and tell these two apart; a stage and {@link ModelRequest#sendAndWait} fail alike with both.
     *
     * @param error the error
     */
    default void onRefused(BackendException error) {
        onError(error);
    }

    /**
     * Says whether the observer takes further responses now. A decoupled model that minds the flow pauses otherwise.
     * Responses may come all the same. Called by any thread.
     *
     * @return {@code true} unless overridden, together with {@link #onReady}
     */
    default boolean isReady() {
        return true;
    }

    /**
     * Runs an action of the server once, when the observer {@linkplain #isReady is ready}. That is now if it is,
     * otherwise later, on any thread; an observer that passes responses on passes the action to {@link
     * ResponseSender#onReady}. A later action replaces an earlier one that has not run. Called by any thread.
     *
     * @param action lets the other model go on; short, does not block
     */
    default void onReady(Runnable action) {
        action.run();
    }
}
