package dev.nereid.spi;

import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * A client's request as it was sent. Read only. A {@link BatchingStrategy} sees waiting requests so; a backend sees the
 * requests that it executes as {@link InferenceRequest}. <em>Implemented by the server.</em>
 *
 * <p>The object that passes the request says how long it may be used: {@link FormingBatch} and {@link Batch}. Later use
 * throws {@link IllegalStateException}.
 *
 * @since 1.0
 */
public interface RequestView {
    /**
     * Returns the client's name for the request.
     *
     * @return the id; empty if the client gave none
     */
    String id();

    /**
     * Returns the number of items in the request.
     *
     * @return the first dimension of its inputs if the model batches, else 1
     */
    int batchSize();

    /**
     * Returns the names of the inputs that the request carries.
     *
     * @return the names; immutable
     */
    List<String> inputs();

    /**
     * Returns an input in the shape that the backend sees ({@link TensorSpec#backendDims()}).
     *
     * @param name the name of an input
     * @return the tensor, read only, valid as long as the object that passed the request says; empty if the
     *     request does not carry it
     */
    Optional<Tensor> input(String name);

    /**
     * Returns an input, or fails with an error that names it.
     *
     * @param name the name of an input
     * @return the tensor, as of {@link #input}
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the request does not carry the input
     */
    default Tensor requireInput(String name) {
        Optional<Tensor> found = input(name);
        if (found.isEmpty()) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT, "input '" + name + "': not in the request (it has: " + inputs() + ")");
        }
        return found.get();
    }

    /**
     * Returns the outputs that the client requested: all of the model's if it named none.
     *
     * @return the names in the order of the model's configuration; empty only for a model without outputs; immutable
     */
    List<String> requestedOutputs();

    /**
     * Returns the request's own parameters, without those for the server.
     *
     * @return the parameters, which stay valid when the request is complete
     */
    Parameters parameters();

    /**
     * Returns the request's position in a sequence.
     *
     * @return the position, or empty for a request without a sequence
     */
    Optional<Sequence> sequence();

    /**
     * Returns the priority that the client requested.
     *
     * @return 1 for the highest, or 0 if the client requested none; unsigned
     */
    long priority();

    /**
     * Returns the timeout of the request. It limits the wait in a queue, where the model allows it, and not the
     * execution: its meaning there is up to the backend.
     *
     * @return the time in microseconds; 0 if the client set none; unsigned
     */
    default long timeoutMicros() {
        return 0;
    }

    /**
     * Returns the deadline of the client.
     *
     * @return a time on the scale of {@link System#nanoTime()}, or empty if the client set no deadline
     */
    OptionalLong deadlineNanos();

    /**
     * Says whether the client or the server cancelled the request. The server does so when its own time to stop has
     * expired. A backend may stop working on it and fail it with {@link ErrorCode#CANCELLED}.
     *
     * <p>A request of a sequence is a step of its state: once it executes it counts, whether its client waits for it or
     * not. A model with sequence batching therefore does not see that the client cancelled it, unless the model is
     * decoupled or its sequences are iterative. It sees that the server did.
     *
     * @return whether it was cancelled
     */
    boolean isCancelled();
}
