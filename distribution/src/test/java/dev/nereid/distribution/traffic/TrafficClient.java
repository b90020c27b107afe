package dev.nereid.distribution.traffic;

import java.io.IOException;

/** A client that sends drawn requests over one protocol. Confined to one thread. */
interface TrafficClient extends AutoCloseable {
    /** Sends one request and, unless the client disconnects early, checks the response against the expected outcome. */
    void perform(Traffic.Exchange exchange) throws IOException, InterruptedException;

    /** Checks that the server sent nothing unrequested, and disconnects. */
    @Override
    void close() throws IOException;
}
