package dev.nereid.spi;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * One client's request within a batch. Owned by the server; used under the same confinement as its {@link Batch},
 * except {@link #isCancelled} and {@link #onCancel}, which any thread may call. <em>Implemented by the server</em>:
 * tests use the fakes of the testkit.
 *
 * <p>After the execution was finished, {@link #isCancelled}, {@link #onCancel} and {@link #fail} have no
 * effect, and every other method throws {@link IllegalStateException}. A request with a {@link #sender()}
 * stays usable, its own inputs included, until the sender is ended.
 */
public interface InferenceRequest {
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
     * @return the tensor, read only, valid until the execution is finished and every response of the request was
     *     sent; empty if the request does not carry it
     */
    Optional<Tensor> input(String name);

    /**
     * Returns the outputs that the client requested: all of the model's if it named none.
     *
     * @return the names in the order of the model's configuration; empty only for a model without outputs; immutable
     */
    List<String> requestedOutputs();

    /**
     * Returns the request's own parameters, without those for the server.
     *
     * @return the parameters by name; immutable
     */
    Map<String, ParameterValue> parameters();

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
     * @return whether it was cancelled
     */
    boolean isCancelled();

    /**
     * Registers an action that runs when the request is cancelled. Cancellation is that of {@link #isCancelled}; the
     * action runs at once if the request already was cancelled. The action runs at most once, on any thread, and never
     * after the request is complete; it must be short and must not block. Its exceptions are logged. Any number of
     * actions may be registered; a deadline that passes does not count as a cancellation here.
     *
     * @param action the action
     * @return the hook that removes the action
     */
    CancelHook onCancel(Runnable action);

    /**
     * Returns the one response of a request to a model that is not decoupled. It is sent when the execution is
     * finished; no call is needed.
     *
     * @return the response to be filled, the same at every call
     * @throws IllegalStateException if the model is decoupled
     */
    InferenceResponse response();

    /**
     * Fails this request with an error; the others of the batch are not affected. A second error is ignored. The request
     * keeps its items in the tensors of {@link Batch#gather} and {@link Batch#scatter}.
     *
     * @param error the error
     */
    void fail(BackendException error);

    /**
     * Detaches the request of a decoupled model from the execution. The sender sends any number of responses at any
     * time. From now on neither the end of the execution nor its exception completes the request: the sender must be
     * ended.
     *
     * @return the sender, the same at every call
     * @throws IllegalStateException if the model is not decoupled
     */
    ResponseSender sender();
}
