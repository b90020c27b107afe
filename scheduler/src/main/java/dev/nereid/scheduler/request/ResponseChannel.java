package dev.nereid.scheduler.request;

import dev.nereid.spi.ResponseSender;

/**
 * Sends all responses to one request that has a sender. Safe for use by any thread. An interface, since its
 * implementation in {@code batch} depends on this package.
 */
public interface ResponseChannel extends ResponseSender {
    /** Sends the terminal response; called once, by the request. */
    void sendTerminal(ResponseEvent event);

    /** Receives the cancellation of the request; called once or more, by the request. */
    void onCancelled();

    /**
     * Ends the sender of a completed request, unless it is ended. Called by the server for a request that the backend
     * rescheduled; later responses are dropped.
     */
    void endByServer();

    /**
     * Ends the use of the inputs by executions; no execution follows. The inputs are freed when the sender is ended
     * too. Called once, by the holder of the queue's or the execution's reference.
     */
    void executed();

    /** Runs an action of the server, once, when the sender is ready, beside one that the backend registered. */
    void alsoWhenReady(Runnable action);

    boolean isEnded();
}
