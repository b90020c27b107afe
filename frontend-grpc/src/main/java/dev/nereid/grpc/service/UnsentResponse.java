package dev.nereid.grpc.service;

import dev.nereid.api.InferResponse;
import dev.nereid.grpc.connection.SentBytes;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Keeps a unary response open until the transport has sent it. Lock-free: whoever takes the response away closes it,
 * and after the end of the call nobody leaves one here for good, since who does looks for the end afterwards.
 *
 * <p>The transport copies a message at once, however many of them wait for a client that does not read. So a response stays
 * open, and its request in flight, as long as the copy waits: the limit on requests in flight bounds both.
 */
final class UnsentResponse {
    private final AtomicReference<@Nullable InferResponse> held = new AtomicReference<>();
    private @Nullable SentBytes bytes; // written before a response is held, read by the thread that takes it away
    private volatile boolean ended;

    /**
     * Takes a response over that the transport has a copy of. Called by the thread that sent it, once.
     *
     * @param counted where the copy is counted, if it is
     */
    void hold(InferResponse response, @Nullable SentBytes counted) {
        bytes = counted;
        held.set(response);
        if (ended) {
            close();
        }
    }

    /** Tells that the transport has sent everything, or will send nothing more. Called by the event loop. */
    void callEnded() {
        ended = true;
        close();
    }

    private void close() {
        InferResponse response = held.getAndSet(null);
        if (response != null) {
            response.close();
            if (bytes != null) {
                bytes.clear();
            }
        }
    }
}
