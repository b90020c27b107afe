package dev.nereid.grpc;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The response to a unary call while the transport has its bytes. Lock-free: whoever takes the response away closes it,
 * and after the end of the call nobody leaves one here for good, since who does looks for the end afterwards.
 *
 * <p>The transport copies a message at once, however many of them wait for a client that does not read. So the tensors
 * stay in use as long as the copy does, and the limit on memory of tensors bounds both. Small responses are closed at
 * once; of them, the transport's limit on calls bounds the number.
 */
final class UnsentResponse {
    /** More is worth counting. */
    private static final long SMALL_BYTES = 64 << 10;

    private final AtomicReference<@Nullable InferResponse> held = new AtomicReference<>();
    private volatile boolean over;

    /** Takes a response over that the transport has a copy of. Called by the thread that sent it, once. */
    void hold(InferResponse response) {
        if (byteSize(response) <= SMALL_BYTES) {
            response.close();
            return;
        }
        held.set(response);
        if (over) {
            close();
        }
    }

    /** Tells that the transport has sent everything, or will send nothing more. Called by the event loop. */
    void callIsOver() {
        over = true;
        close();
    }

    private void close() {
        InferResponse response = held.getAndSet(null);
        if (response != null) {
            response.close();
        }
    }

    private static long byteSize(InferResponse response) {
        long size = 0;
        for (NamedTensor output : response.outputs()) {
            size += output.tensor().byteSize();
        }
        return size;
    }
}
