package dev.nereid.grpc.service;

import dev.nereid.api.InferResponse;
import dev.nereid.grpc.connection.UnsentBytes;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Keeps a unary response open until the transport has sent it. Lock-free: the thread that removes the response closes
 * it. The thread that stores a response checks for the end of the call afterwards, so that none is left here.
 *
 * <p>The transport copies a message at once, even for a client that does not read. So a response stays open, and its
 * request in flight, as long as the copy waits: the limit on requests in flight bounds both.
 */
final class UnsentResponse {
    private final AtomicReference<@Nullable InferResponse> held = new AtomicReference<>();
    private @Nullable UnsentBytes bytes; // written before a response is stored, read by the thread that removes it
    private volatile boolean ended;

    /** Stores a copied response, once, on the thread that sent it; {@code counted} is {@code null} for no count. */
    void hold(InferResponse response, @Nullable UnsentBytes counted) {
        bytes = counted;
        held.set(response);
        if (ended) {
            close();
        }
    }

    /** Closes the response: the transport has sent everything, or will send nothing more. Called by the event loop. */
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
