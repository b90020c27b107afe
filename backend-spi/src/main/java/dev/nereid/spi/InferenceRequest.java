package dev.nereid.spi;

import java.util.List;
import java.util.Optional;

/**
 * One client's request within a batch. Owned by the server; used under the same confinement as its {@link Batch},
 * except {@link #isCancelled} and {@link #onCancel}, which any thread may call. <em>Implemented by the server</em>:
 * tests use the fakes of the testkit.
 *
 * <p>After {@link Batch#defer} each request of the batch may be continued by another thread, one thread at a time, as
 * long as no thread uses the tensors of the whole batch.
 *
 * <p>Inputs are valid until the execution is finished. An input in which an output lies stays until the response with
 * that output was sent. {@link #leaseInputs()} keeps all of them longer.
 *
 * <p>After the execution was finished, {@link #isCancelled}, {@link #onCancel} and {@link #fail} have no
 * effect, and every other method throws {@link IllegalStateException}. A request with a {@link #sender()}
 * stays usable, its own inputs included, until the sender is ended.
 *
 * @since 1.0
 */
public interface InferenceRequest extends RequestView {
    /**
     * {@inheritDoc}
     *
     * @return the inputs of the client, and behind them the control inputs and states of its sequence
     */
    @Override
    List<String> inputs();

    /**
     * {@inheritDoc}
     *
     * @return the position; the start of a sequence is that of its first execution alone, not of a
     *     {@linkplain #reschedule() rescheduled} one
     */
    @Override
    Optional<Sequence> sequence();

    /**
     * Registers an action that runs when the request is cancelled. Cancellation is that of {@link #isCancelled}; the
     * action runs at once if the request already was cancelled. The action runs at most once, on any thread, and never
     * after the request is complete; it must be short and must not block. Its exceptions are logged. Any number of
     * actions may be registered; a deadline that passes does not count as a cancellation here. As {@link #isCancelled}
     * says, a step of a sequence is not cancelled by its client.
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
     * @throws IllegalStateException if the model is decoupled, or {@link #sender()} was called in this execution
     */
    InferenceResponse response();

    /**
     * Says whether this is a null request, which fills the place of an absent one.
     *
     * <p>Only models with direct sequence batching get null requests, for places of a batch at which sequences have no
     * request now. A null request has no id, no sequence and no parameters. It carries the inputs of another request of
     * the batch in their shapes: as many zero bytes, and empty texts for {@link DataType#BYTES}, so four zero bytes for
     * each element. A {@link TensorSpec.Trait#SHAPE_TENSOR} has the values of that request. The control inputs say that
     * it is not ready; states are zeros or empty texts. It is computed as any other request; its responses and states
     * are dropped.
     *
     * @return {@code false} for the request of a client
     */
    default boolean isNullRequest() {
        return false;
    }

    /**
     * Keeps the inputs readable beyond the end of the execution.
     *
     * <p>The lease outlives the sender and the response too. It covers the tensors of {@link #input}, states and control
     * inputs included, as they are now; tensors of {@link Batch#gather} are not part of it. Called while the request is usable; there may be several leases.
     *
     * <p>Leased memory counts in the limits of the server, as memory of a request in flight, and the instance is not
     * closed before the end of the lease: an unload waits for it. The server ends a forgotten lease, and logs that: a
     * lease is forgotten if the plugin can no longer reach the lease, the request or a tensor of it. Only tensors count
     * that {@link #input} returns after the first call of this method or of {@link #sender()} in the model; in
     * decoupled models all that it returns. Tensors of {@link Batch#gather}, and memory of another model or a program
     * that sent the request, never count. So a model that reads an input later keeps the lease.
     *
     * @return ends the lease: to be run once, on any thread; later runs do nothing. It never blocks
     * @throws IllegalStateException if the execution is finished, and the sender ended or never requested
     */
    default Runnable leaseInputs() {
        throw new UnsupportedOperationException("leaseInputs: not available from this request (expected: a server's)");
    }

    /**
     * Returns the writable value of a state of the request's sequence. The present value is an input of the request.
     *
     * <p>Only models with sequence batching have states ({@code sequence_batching.state}).
     *
     * @param output the name of the state's output in the configuration ({@code sequence_batching.state.output_name})
     * @return the value for the next request of the sequence, the same at every call
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the model has no such state
     */
    default SequenceState state(String output) {
        throw new BackendException(ErrorCode.INVALID_ARGUMENT, "state '" + output + "': the model has no states");
    }

    /**
     * Executes the request once more instead of completing it at the end of this execution. The request waits in
     * the queue of its model again, with the inputs of the client; what changes lies in the states of its sequence. A
     * {@link #sender()} stays open, and is detached from a later execution only by a call of {@link #sender()} in it.
     * Outputs that were put into {@link #response()} are discarded. Has no effect if the execution fails, or if the
     * request is failed, cancelled or completed before it is executed again.
     *
     * <p>Only for models with iterative sequences. May be called once for each execution, before that is finished.
     *
     * @throws IllegalStateException if the model has no iterative sequences, the sender is ended, the execution is
     *     finished, or this is the second call in it
     */
    default void reschedule() {
        throw new IllegalStateException(
                "reschedule: the model has no iterative sequences (expected: iterative_sequence)");
    }

    /**
     * Fails this request with an error; the others of the batch are not affected. A second error is ignored. The
     * request keeps its items in the tensors of {@link Batch#gather} and {@link Batch#put(String, Tensor, Runnable)}.
     *
     * @param error the error
     */
    void fail(BackendException error);

    /**
     * Detaches the request from the execution. Its responses go through the sender, at any time; the other requests of
     * the batch do not wait for it. From now on the end of the execution or its exception does not complete the
     * request: the sender must be ended.
     *
     * <p>The sender of a decoupled model sends any number of responses, the sender of another model one. Outputs of
     * {@link #response()} and of the whole batch, such as of {@link Batch#put(String, Tensor, Runnable)}, are dropped
     * for a detached request. Every model may use senders, with {@link Batch#defer} or without.
     *
     * @return the sender, the same at every call
     */
    ResponseSender sender();
}
