package dev.nereid.distribution.traffic;

import java.io.IOException;

/** A client that sends what is drawn for it, over one protocol. Confined to one thread. */
interface TrafficClient extends AutoCloseable {
    /** Sends one request and, unless it is to leave, checks that its answer is the one expected. */
    void perform(Traffic.Exchange exchange) throws IOException, InterruptedException;

    /** Checks that the server said nothing that was not asked for, and disconnects. */
    @Override
    void close() throws IOException;
}
