package dev.nereid.spi;

/**
 * Receives the responses of another model. <em>Implemented by backends.</em>
 *
 * <p>Called on threads of the server, one call at a time: methods return quickly and never block. Exactly one call is
 * terminal, {@link #onCompleted} or {@link #onError}.
 *
 * @since 1.0
 */
@Incubating
public interface ModelResponseObserver {
    /**
     * Receives a response.
     *
     * @param response the response, owned by the observer, which closes it
     */
    void onResponse(ModelResponse response);

    /** Ends the request: no more responses follow. */
    void onCompleted();

    /**
     * Ends the request with an error.
     *
     * @param error the error
     */
    void onError(BackendException error);

    /**
     * Says whether the observer takes further responses now. A decoupled model that minds the flow pauses otherwise,
     * until {@link ModelCall#ready} is called.
     *
     * @return {@code true} unless overridden
     */
    default boolean isReady() {
        return true;
    }
}
