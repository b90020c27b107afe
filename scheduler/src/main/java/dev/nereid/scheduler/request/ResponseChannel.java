package dev.nereid.scheduler.request;

import dev.nereid.spi.ResponseSender;

/** Sends all responses to one request of a decoupled model. Safe for use by any thread. */
public interface ResponseChannel extends ResponseSender {
    /** Sends the terminal response; called once, by the request. */
    void sendTerminal(ResponseEvent event);

    /** Receives the cancellation of the request; called once or more, by the request. */
    void onCancelled();

    /** Returns whether the backend ended the sender. */
    boolean isEnded();
}
