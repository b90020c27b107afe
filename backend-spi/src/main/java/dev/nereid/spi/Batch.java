package dev.nereid.spi;

import java.util.List;
import java.util.Set;

/**
 * The requests that one execution serves. Confined to the execution: used by the thread that runs it, and after
 * {@link #defer} by the threads that continue it, one at a time; {@link InferenceRequest} says what its requests allow.
 * <em>Implemented by the server</em>: tests use the fakes of the testkit.
 *
 * <p>Two ways to work on it: as a whole, with {@link #gather} and {@link #put(String, Tensor, Runnable) put}, as models
 * that batch do; or request by request, with {@link InferenceRequest#input} and {@link InferenceRequest#response}. An
 * output is written one way or the other, once. The rules for outputs of {@link InferenceResponse} apply here too.
 *
 * <p>After the execution was finished every method throws {@link IllegalStateException};
 * {@link #put(String, Tensor, Runnable) put} runs its {@code release} even then. Two executions never hold requests of the same sequence at the same time, deferred ones
 * included.
 *
 * @since 1.0
 */
public interface Batch {
    /**
     * Returns the requests in the order of their items.
     *
     * @return at least one request; immutable
     */
    List<InferenceRequest> requests();

    /**
     * Returns the number of items in the batch.
     *
     * @return the sum of {@link InferenceRequest#batchSize()}, at most the model's largest batch
     */
    int size();

    /**
     * Returns the names of the inputs that the batch carries. They are the inputs of its requests, which all carry the
     * same, and the inputs that the server derives for the batch from the configuration.
     *
     * @return the names in the order of the model's configuration; immutable
     */
    Set<String> inputs();

    /**
     * Returns the names of the outputs that at least one request requests.
     *
     * @return the names in the order of the model's configuration; empty only for a model without outputs; immutable
     */
    Set<String> requestedOutputs();

    /**
     * Returns an input of all requests as one tensor. The requests' tensors follow one another along the first
     * dimension. With a single request this is the request's own tensor, and nothing is copied. Tensors that already
     * lie one after the other, such as outputs of an earlier batch of the same requests, are not copied either. An
     * input that is {@link TensorSpec.Trait#RAGGED} is flat, the elements of all requests one after another in one
     * dimension; a {@link TensorSpec.Trait#SHAPE_TENSOR} occurs once, since it is the same for all. Inputs that the
     * configuration derives from the batch ({@link ModelSettings#batchInputs()}) are available here and nowhere else.
     *
     * @param input the name of an input
     * @return the tensor, read only, in memory of the host, valid until the execution is finished
     * @throws BackendException if the batch does not carry the input ({@link ErrorCode#INVALID_ARGUMENT}), if
     *     requests cannot be joined because their further dimensions differ, if a derived number does not fit its type,
     *     or if there is no memory
     */
    Tensor gather(String input);

    /**
     * Returns an input of all requests as one tensor in one place. A place on a device is on that of the instance; a
     * tensor there may have a {@link Tensor#fence()} if the traits of the backend accept the place.
     *
     * @param input as of {@link #gather(String)}
     * @param place where the tensor is to lie
     * @return as there, in that place; in ordinary memory in place of pinned memory that the server does not have
     * @throws BackendException as there, and {@link ErrorCode#UNSUPPORTED} if the server has no memory there
     */
    default Tensor gather(String input, MemoryPlace place) {
        if (place.isHost()) {
            return gather(input);
        }
        throw new BackendException(
                ErrorCode.UNSUPPORTED, "input '" + input + "': no memory of " + place + " (expected: host memory)");
    }

    /**
     * Allocates an output for the whole batch in memory of the server. The backend fills it; this is the fastest way
     * when the shape is known before the execution. When the execution is finished, each request that requested the
     * output gets its own items along the first dimension, unless it has a
     * {@linkplain InferenceRequest#sender() sender}. An output that the configuration splits by the shapes of an input
     * ({@link ModelSettings#batchOutputs()}) has the elements of all parts one after another, in any shape.
     *
     * @param output the name of an output
     * @param type the type of its elements; of fixed size
     * @param shape its dimensions, the first being {@link #size()} if the model batches, unless the output is split
     *     by the shapes of an input
     * @return a tensor to be written, content undefined, aligned to 64 bytes
     * @throws BackendException if the shape does not fit the batch, is too large, or there is no memory
     */
    Tensor allocate(String output, DataType type, Shape shape);

    /**
     * Allocates an output of byte strings for the whole batch. It lies in memory of the server, as for {@link
     * #allocate}. The server splits it among the requests by the framing of its elements.
     *
     * @param output the name of an output
     * @param shape its dimensions, the first being {@link #size()} if the model batches
     * @param byteSize the size of all elements together with their length prefixes, in bytes
     * @return a tensor of {@link DataType#BYTES} to be written, content undefined
     * @throws BackendException as {@link #allocate}
     */
    Tensor allocateBytes(String output, Shape shape, long byteSize);

    /**
     * Adds an output for the whole batch without a copy. It lies in memory of the backend, or in a tensor of this
     * batch's {@link #gather}. The server reads it in place, each request its own part as of {@link #allocate}, and
     * runs {@code release} afterwards.
     *
     * @param output the name of an output
     * @param tensor the output, its first dimension being {@link #size()} if the model batches; not to be changed
     *     until {@code release} runs
     * @param release run exactly once, on any thread, when the server no longer needs the memory: perhaps before this
     *     method returns, and also when it throws. Short, must not block; its exceptions are logged
     * @throws BackendException if the tensor does not fit the batch, or lies in memory that other threads may not use
     */
    void put(String output, Tensor tensor, Runnable release);

    /**
     * Adds an output for the whole batch in memory that needs no release. It is a tensor of this batch's
     * {@link #gather}, or memory that never changes and is freed by the garbage collector.
     *
     * @param output the name of an output
     * @param tensor the output, as in {@link #put(String, Tensor, Runnable)}
     * @throws BackendException as {@link #put(String, Tensor, Runnable)}
     */
    default void put(String output, Tensor tensor) {
        put(output, tensor, () -> {});
    }

    /**
     * Allocates an output for the whole batch in memory of one place.
     *
     * @param output as of {@link #allocate(String, DataType, Shape)}
     * @param type as there
     * @param shape as there
     * @param place where the backend writes the output; the server moves it to where its client wants it
     * @return a tensor in that place, to be written; in ordinary memory in place of pinned memory that the server does
     *     not have
     * @throws BackendException as there, and {@link ErrorCode#UNSUPPORTED} if the server has no memory there
     */
    default Tensor allocate(String output, DataType type, Shape shape, MemoryPlace place) {
        if (place.isHost()) {
            return allocate(output, type, shape);
        }
        throw new BackendException(
                ErrorCode.UNSUPPORTED, "output '" + output + "': no memory of " + place + " (expected: host memory)");
    }

    /**
     * Says whether the requests take an output on a device. The server does not move it then: it is for the next step
     * of an ensemble, or for memory of the client on that device.
     *
     * @param output the name of an output
     * @param place memory of the instance's device
     * @return whether all requests of the output take it there; {@code false} if there are none
     */
    @Incubating
    default boolean takesOutput(String output, MemoryPlace place) {
        return false;
    }

    /**
     * Names the work of a device that writes an allocated output of the batch. The execution may finish before the work
     * has ended: inputs, buffers and outputs of the batch stay until then. If all requests leave all outputs with fences
     * on the device ({@link #takesOutput}, and not in memory of the client), and the model has no states, they are passed
     * on with their fences at once; otherwise the server waits before it responds. Without a fence the output is written
     * when the execution is finished.
     *
     * @param output the name of an output of {@link #allocate(String, DataType, Shape, MemoryPlace)}
     * @param fence the work that writes it
     * @throws BackendException {@link ErrorCode#UNSUPPORTED} if the server cannot wait for work of a device,
     *     {@link ErrorCode#INTERNAL} if the output was not allocated
     */
    @Incubating
    default void fence(String output, Fence fence) {
        throw new BackendException(
                ErrorCode.UNSUPPORTED, "output '" + output + "': fences are not available from this server");
    }

    /**
     * Returns the writable values of a state for all requests of the batch. They follow one another along the first
     * dimension, including the values of null requests; {@link InferenceRequest#state} is the state of one request. A
     * state is written one way or the other.
     *
     * <p>Only models with sequence batching have states ({@code sequence_batching.state}).
     *
     * @param output the name of the state's output in the configuration ({@code sequence_batching.state.output_name})
     * @return the values for the next requests of the sequences, the same at every call
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the model has no such state
     */
    default SequenceState state(String output) {
        throw new BackendException(ErrorCode.INVALID_ARGUMENT, "state '" + output + "': the model has no states");
    }

    /**
     * Reports that the inputs are prepared, for the statistics of the model. They distinguish preparation of inputs,
     * computation and delivery of outputs. To be called at most once; a later call replaces an earlier one. An
     * execution that does not call it spends no time on its inputs.
     */
    default void inputsRead() {}

    /**
     * Reports that the outputs are computed, and only their delivery remains; otherwise as {@link #inputsRead}. An
     * execution that does not call it spends no time on its outputs.
     */
    default void outputsComputed() {}

    /**
     * Keeps the batch alive beyond the return of {@link ModelInstance#execute}. The instance counts as idle at the
     * return, and the next execution may start at once, within {@link BackendTraits#maxDeferred()}. Only the handle
     * then ends the batch: if {@code execute} throws after this call, requests without a response get the error, but
     * inputs and buffers stay until the handle is ended.
     *
     * @return the handle that completes the execution, from any thread, perhaps before {@code execute} returns
     * @throws IllegalStateException if called a second time
     */
    DeferredExecution defer();
}
