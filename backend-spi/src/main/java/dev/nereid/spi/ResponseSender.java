package dev.nereid.spi;

/**
 * Sends the responses to one request: any number for a decoupled model, one for another. At any time, on any thread,
 * also after {@link ModelInstance#execute} returned. Safe for use by several threads, one response at a time each.
 * <em>Implemented by the server.</em>
 *
 * <p>Exactly one call of {@code complete} or of {@link #fail} ends the request; later calls are dropped. The request
 * and its own inputs stay usable until then, and the instance is not closed before; a
 * {@linkplain InferenceRequest#reschedule() rescheduled} request is passed back to the server instead, which then may
 * end the sender. That call also discards open responses that its thread used last: their tensors must not be used any
 * more. A response of another thread is dropped when that sends or discards it.
 *
 * <p>The client of a model that is not decoupled gets its response when it is sent, by {@link #send}, {@link #sendError}
 * or {@link #complete(InferenceResponse)}. A second one throws {@link IllegalStateException}, and so does not reach the
 * client. An end without a response fails the request with {@link ErrorCode#INTERNAL}; an error that follows the response
 * is dropped.
 *
 * <p>A plugin that can no longer reach the sender, its request, or a response or tensor of it, has forgotten it: the
 * server fails the request with {@link ErrorCode#INTERNAL} and logs that, at a later collection of the heap. Of inputs,
 * the tensors count that {@link InferenceRequest#leaseInputs} says. So a model that reads an input later keeps the
 * sender.
 *
 * @since 1.0
 */
public interface ResponseSender {
    /**
     * Starts a response.
     *
     * @return an empty response, owned by the caller until it is sent or discarded
     */
    InferenceResponse newResponse();

    /**
     * Sends a response.
     *
     * @param response a response of {@link #newResponse} of this sender that was not sent before; owned by the server
     *     from now on
     * @throws IllegalArgumentException if it belongs to another sender, was sent, or was discarded
     * @throws IllegalStateException if it is the second response of a model that is not decoupled; it is discarded
     */
    void send(InferenceResponse response);

    /**
     * Sends a response and ends the request with it. The client sees at once that it is the final one.
     *
     * @param last as for {@link #send}
     * @throws IllegalArgumentException as {@link #send}
     * @throws IllegalStateException as {@link #send}; the sender is ended all the same
     */
    void complete(InferenceResponse last);

    /**
     * Sends a failed response. The client gets the error in place of outputs, and the request continues. Any number of
     * responses, failed ones too, may follow, until the sender is ended. Does nothing, and counts nothing, once the
     * sender was ended or the client cancelled the request. The caller keeps the error. Never blocks.
     *
     * <p>The response counts as failed in the statistics of responses, in its place among the sent responses: do not
     * {@linkplain #report report} it too. The end alone decides whether the request counts as a success or as a
     * failure. To end the request with an error, call {@link #fail}.
     *
     * <p>The error is the response of a model that is not decoupled: the request fails with it, and the sender stays open.
     *
     * @param error the error of this response
     * @throws IllegalStateException as {@link #send}
     */
    void sendError(BackendException error);

    /** Ends the request: no more responses follow. Without any, a model that is not decoupled has failed. */
    void complete();

    /**
     * Ends the request with an error: no more responses follow. For an error of one response, after which others
     * follow, see {@link #sendError}.
     *
     * @param error the error
     */
    void fail(BackendException error);

    /**
     * Reports the timings of a response, for the statistics of the model. The first report of a request counts for its
     * first response, and so on; responses of {@link #sendError} are omitted, since they are counted. Backends need not
     * report; responses without a report are not in these statistics. May be called on any thread, before or after the
     * response is sent, also after the end of the request. Never blocks.
     *
     * @param report the times of the response
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the times are out of order; nothing is counted
     *     then
     */
    default void report(ResponseReport report) {
        // For senders that keep no statistics, such as senders of tests.
    }

    /**
     * Says whether the client cancelled the request. The sender must still be ended.
     *
     * @return whether it was cancelled
     */
    boolean isCancelled();

    /**
     * Releases the inputs of the request before its end. The backend uses them no more. In a sequence, the next request
     * may be executed from now on. Later calls do nothing.
     */
    default void releaseInputs() {
        // Without an implementation the inputs stay until the sender is ended.
    }

    /**
     * Says whether the client reads its responses. A backend that pauses while this is {@code false} never loses a
     * slow client; one that goes on may reach the limits on unsent responses, which end the request. Never blocks.
     *
     * @return whether further responses would be sent soon; {@code true} once the request is cancelled or the sender
     *     ended, so that nothing waits for a client that is gone: a loop over it checks {@link #isCancelled} too
     */
    default boolean isReady() {
        return true;
    }

    /**
     * Runs an action once, when the sender {@linkplain #isReady is ready}. It runs at the latest when the request is
     * cancelled or the sender is ended. The client may be slow again by then: the action asks {@link #isReady} before
     * each response. A later action replaces an earlier one that has not run.
     *
     * <p>The action runs on a thread of the server with the context class loader of the plugin, also if the sender is
     * ready already: never on an event loop, never inside this call, and never two actions of a sender at a time. So an
     * action may send and then register itself again; the stack does not grow by it. It must be short and must not
     * block. Its exceptions are logged, and the request continues.
     *
     * @param action the action, for instance one that sends the next responses
     */
    default void onReady(Runnable action) {
        action.run();
    }
}
