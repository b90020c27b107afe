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
 * <p>After the execution was finished, {@link #isCancelled}, {@link #onCancel} and {@link #fail} do nothing of
 * consequence, and every other method throws {@link IllegalStateException}. A request whose {@link #sender()} was
 * taken stays usable, its own inputs included, until the sender is ended.
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
     * Returns the outputs that the client wants: all of the model's if it named none.
     *
     * @return the names in the order of the model's configuration; empty only for a model without outputs; immutable
     */
    List<String> requestedOutputs();

    /**
     * Returns the request's own parameters, without those that the server understands itself.
     *
     * @return the parameters by name; immutable
     */
    Map<String, ParameterValue> parameters();

    /**
     * Returns the request's place in a sequence.
     *
     * @return the place, or empty for a request that belongs to none
     */
    Optional<Sequence> sequence();

    /**
     * Returns the priority that the client asked for.
     *
     * @return 1 for the highest, or 0 if the client asked for none; unsigned
     */
    long priority();

    /**
     * Returns the time-out that the client gave the request. It bounds how long the request waits in a queue, where the
     * model lets it, and not its execution: what it means there is up to the backend.
     *
     * @return the time in microseconds; 0 if the client gave none; unsigned
     */
    default long timeoutMicros() {
        return 0;
    }

    /**
     * Returns when the request is no longer of use to the client.
     *
     * @return a time on the scale of {@link System#nanoTime()}, or empty if the client set no deadline
     */
    OptionalLong deadlineNanos();

    /**
     * Says whether the client withdrew the request, or the server cannot wait for it any more since its own time to end
     * is over. A backend may stop working on it and fail it with {@link ErrorCode#CANCELLED}.
     *
     * @return whether it was withdrawn
     */
    boolean isCancelled();

    /**
     * Has an action run when the request is withdrawn, as {@link #isCancelled} says: at once if it already was. The
     * action runs at most once, on any thread, and never after the request was answered; it must be short and must not
     * block. What it throws is logged. Any number of actions may wait; a deadline that passes does not count as a
     * withdrawal here.
     *
     * @param action the action
     * @return the hook by which the action is taken back
     */
    CancelHook onCancel(Runnable action);

    /**
     * Returns the one response of a request to a model that is not decoupled. It is sent when the execution is
     * finished; there is nothing to call.
     *
     * @return the response to be filled, the same at every call
     * @throws IllegalStateException if the model is decoupled
     */
    InferenceResponse response();

    /**
     * Answers this request with an error; the others of the batch are not touched. A second answer is ignored. The
     * request keeps its items in what {@link Batch#gather} returns and in what {@link Batch#scatter} takes.
     *
     * @param error what went wrong
     */
    void fail(BackendException error);

    /**
     * Takes the request of a decoupled model out of the execution, to answer it any number of times at any time. From
     * now on neither the end of the execution nor an exception of it answers the request: the sender must be ended.
     *
     * @return the sender, the same at every call
     * @throws IllegalStateException if the model is not decoupled
     */
    ResponseSender sender();
}
