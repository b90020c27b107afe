package dev.nereid.scheduler.request;

import dev.nereid.spi.ResponseSender;

/** Sends all responses to one request of a decoupled model. Safe for use by any thread. */
public interface ResponseChannel extends ResponseSender {
    /** Sends the terminal response; called once, by the request. */
    void sendTerminal(ResponseEvent event);

    /** Returns whether the backend ended the sender. */
    boolean isEnded();
}
