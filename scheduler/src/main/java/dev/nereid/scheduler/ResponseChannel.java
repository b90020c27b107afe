package dev.nereid.scheduler;

import dev.nereid.spi.ResponseSender;

/** Sends all responses to one request of a decoupled model. Safe for use by any thread. */
interface ResponseChannel extends ResponseSender {
    /** Sends the terminal response; called once, by the request. */
    void sendTerminal(Answer last);

    /** Returns whether the backend ended the sender. */
    boolean isEnded();
}
