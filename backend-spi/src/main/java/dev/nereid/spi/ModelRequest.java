package dev.nereid.spi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;

/**
 * A request of a model or a program to a model. It is sent once. All methods but {@link #cancel} are confined to one
 * thread at a time. <em>Implemented by the server.</em>
 *
 * <p>Methods that add something return this request, so that calls can be chained. Names, types and shapes are checked
 * when the request is sent: wrong ones fail it as they fail a client's request.
 *
 * {@snippet :
 * try (ModelResponse response = client.request("twice")
 *         .input("INPUT", Shape.of(1, 3), 1f, 2.5f, -3f)
 *         .sendAndWait()) {
 *     float[] doubled = response.requireOutput("OUTPUT").floats();
 * }
 * }
 *
 * @since 1.0
 */
public interface ModelRequest {
    /**
     * Ties the request to the one that causes it. The cancellation, the deadline and the trace of that request apply to
     * this one too.
     *
     * <p>A model may call itself, and models may call each other in a circle, as long as instances are free. A request
     * fails with {@link ErrorCode#INVALID_ARGUMENT} if every instance of its model waits in the chain of requests that
     * leads to it: it would wait for itself. If other chains hold the rest of them, and wait in turn for instances that
     * this chain holds, it fails with {@link ErrorCode#UNAVAILABLE}, and may be sent again. An execution counts as waiting
     * until it returns, also for requests with a {@linkplain InferenceRequest#sender() sender}; these hold nothing
     * afterwards. One that is {@linkplain Batch#defer deferred} before it sends the request does not hold its
     * instance, but counts in {@link BackendTraits#maxDeferred()}. A chain has at most 64 models. Models with sequences, and models that preserve the order
     * of responses, are not called in their own chain.
     *
     * @param cause the request that causes this one, and stays usable until this one is complete
     * @return this request
     */
    ModelRequest onBehalfOf(InferenceRequest cause);

    /**
     * Ties the request to a batch that causes it, in place of one request. It is cancelled when all requests of the batch
     * are cancelled. Its deadline is the latest of theirs, and none if one of them has none. A batch of one request is as
     * that request; one of several gives no id. Null requests do not count. Priority, parameters and position in a sequence
     * are not taken over.
     *
     * @param cause the batch that causes this request, to be sent before the execution of the batch is finished
     * @return this request
     * @throws IllegalStateException if its execution is finished
     */
    default ModelRequest onBehalfOf(Batch cause) {
        if (cause.requests().size() == 1) {
            return onBehalfOf(cause.requests().getFirst());
        }
        throw new UnsupportedOperationException("onBehalfOf: not available for a batch (expected: a server's request)");
    }

    /**
     * Sets the id of the request.
     *
     * @param id the id; empty, as by default, for that of the causing request, if there is one and no other
     * @return this request
     */
    ModelRequest id(String id);

    /**
     * Sets the priority of the request.
     *
     * @param priority 1 for the highest, or 0, as by default, for that of the other model's configuration; unsigned
     * @return this request
     */
    ModelRequest priority(long priority);

    /**
     * Limits the wait in the queue of the other model, where that allows it.
     *
     * @param micros the time in microseconds; 0, as by default, for that of the configuration; unsigned
     * @return this request
     */
    ModelRequest timeoutMicros(long micros);

    /**
     * Selects a version of the model.
     *
     * @param version the version; without it, the server selects the latest that it serves
     * @return this request
     */
    ModelRequest version(long version);

    /**
     * Adds an input.
     *
     * @param name the name of an input of the other model
     * @param tensor its content: an input of the causing request, an output of a {@link ModelResponse} that is open
     *     when the request is sent, or memory of the caller. That of the caller stays valid and unchanged until the request
     *     is complete, its responses are closed, and {@linkplain ModelResponse#lease leases} of their outputs have ended,
     *     since an output may lie in it, and until the other model has ended its {@linkplain
     *     InferenceRequest#leaseInputs leases} of its inputs: a read after the close of an arena fails there. The server
     *     keeps inputs and outputs as long, which may be closed once the request is sent, and copies an array of the heap
     *     now
     * @return this request
     */
    ModelRequest input(String name, Tensor tensor);

    /**
     * Adds an input in memory of the caller, which gets it back. That is as soon as nothing reads it any more: the request is
     * complete then, its responses are closed, and the leases on their outputs and on the inputs of the other model have ended.
     *
     * @param name as of {@link #input(String, Tensor)}
     * @param tensor its content, in memory that any thread may use; not to be changed until {@code release} runs
     * @param release run exactly once, on any thread, if the request is sent: perhaps before this method returns, and also if
     *     the request is refused or {@link #send(ModelResponseObserver)} throws. Short, must not block; its exceptions are
     *     logged. By default the input is copied, and this runs at once
     * @return this request
     */
    default ModelRequest input(String name, Tensor tensor, Runnable release) {
        MemorySegment copy = Arena.ofAuto().allocate(tensor.byteSize()).copyFrom(tensor.data());
        input(name, Tensor.of(tensor.type(), tensor.shape(), copy, tensor.place()));
        release.run();
        return this;
    }

    /**
     * Adds an input of {@link DataType#FP32}.
     *
     * @param name the name of an input
     * @param shape its dimensions, with batch dimension if the model batches
     * @param values the elements in row-major order, which are copied
     * @return this request
     * @throws IllegalArgumentException if a dimension is variable, or if the number of elements differs
     */
    default ModelRequest input(String name, Shape shape, float... values) {
        return input(name, Tensor.ofFloats(shape, values));
    }

    /**
     * Adds an input of {@link DataType#FP64}.
     *
     * @param name the name of an input
     * @param shape its dimensions, with batch dimension if the model batches
     * @param values the elements in row-major order, which are copied
     * @return this request
     * @throws IllegalArgumentException if a dimension is variable, or if the number of elements differs
     */
    default ModelRequest input(String name, Shape shape, double... values) {
        return input(name, Tensor.ofDoubles(shape, values));
    }

    /**
     * Adds an input of {@link DataType#INT32}.
     *
     * @param name the name of an input
     * @param shape its dimensions, with batch dimension if the model batches
     * @param values the elements in row-major order, which are copied
     * @return this request
     * @throws IllegalArgumentException if a dimension is variable, or if the number of elements differs
     */
    default ModelRequest input(String name, Shape shape, int... values) {
        return input(name, Tensor.ofInts(shape, values));
    }

    /**
     * Adds an input of {@link DataType#INT64}.
     *
     * @param name the name of an input
     * @param shape its dimensions, with batch dimension if the model batches
     * @param values the elements in row-major order, which are copied
     * @return this request
     * @throws IllegalArgumentException if a dimension is variable, or if the number of elements differs
     */
    default ModelRequest input(String name, Shape shape, long... values) {
        return input(name, Tensor.ofLongs(shape, values));
    }

    /**
     * Adds an input of texts, of {@link DataType#BYTES}.
     *
     * @param name the name of an input
     * @param shape its dimensions, with batch dimension if the model batches
     * @param texts the elements in row-major order, encoded as UTF-8
     * @return this request
     * @throws IllegalArgumentException if a dimension is variable, or if the number of elements differs
     */
    default ModelRequest input(String name, Shape shape, String... texts) {
        return input(name, Tensor.ofStrings(shape, List.of(texts)));
    }

    /**
     * Requests an output.
     *
     * @param name the name of an output of the other model; without any, all outputs are requested
     * @return this request
     */
    ModelRequest output(String name);

    /**
     * Requests an output in memory of one place.
     *
     * @param name as of {@link #output(String)}
     * @param place where the output is to lie; the server moves it there if the other model leaves it elsewhere
     * @return this request
     */
    ModelRequest output(String name, MemoryPlace place);

    /**
     * Adds a text as a parameter; one of the same name is replaced.
     *
     * @param name the parameter's name
     * @param value its value
     * @return this request
     */
    ModelRequest parameter(String name, String value);

    /**
     * Adds an integer as a parameter; one of the same name is replaced.
     *
     * @param name the parameter's name
     * @param value its value
     * @return this request
     */
    ModelRequest parameter(String name, long value);

    /**
     * Adds a number as a parameter; one of the same name is replaced.
     *
     * @param name the parameter's name
     * @param value its value
     * @return this request
     */
    ModelRequest parameter(String name, double value);

    /**
     * Adds a truth value as a parameter; one of the same name is replaced.
     *
     * @param name the parameter's name
     * @param value its value
     * @return this request
     */
    ModelRequest parameter(String name, boolean value);

    /**
     * Makes the request part of a sequence.
     *
     * @param sequence the position in the sequence
     * @return this request
     */
    ModelRequest sequence(Sequence sequence);

    /**
     * Sends the request to a model that is not decoupled. Never blocks.
     *
     * @return completes with the response, which its receiver closes, or exceptionally with a {@link BackendException}
     *     itself, which stages that depend on this one wrap in a {@link java.util.concurrent.CompletionException}; on a
     *     separate thread, with the context class loader of the plugin or program, perhaps before this method returns:
     *     an action that follows and blocks holds no other request
     * @throws IllegalStateException if the request was sent before
     */
    CompletionStage<ModelResponse> send();

    /**
     * Sends the request to a model that is not decoupled, and waits for the response. For executions on threads of their
     * own ({@link BackendTraits.Execution#LONG}), and threads of the backend. The instance serves nobody else meanwhile:
     * {@link #send()} does not hold it. If the thread is interrupted, or the causing request is cancelled, this one is
     * cancelled; another thread may cancel it by {@link #cancel}.
     *
     * @return the response, which the caller closes
     * @throws BackendException if the request failed; {@link ErrorCode#INVALID_ARGUMENT} or {@link
     *     ErrorCode#UNAVAILABLE} if all instances of the model wait, in turn, for the execution on this thread: see
     *     {@link #onBehalfOf(InferenceRequest)}
     * @throws InterruptedException if the thread is interrupted meanwhile: the caller passes it on, or restores the interrupt
     * @throws IllegalStateException if the thread must not block, since it serves connections or calls observers of
     *     other requests; or if the request was sent before
     */
    default ModelResponse sendAndWait() throws InterruptedException {
        try {
            return send().toCompletableFuture().get();
        } catch (ExecutionException e) {
            throw e.getCause() instanceof BackendException failure
                    ? failure
                    : new BackendException(ErrorCode.INTERNAL, "internal error: " + e.getCause(), e);
        }
    }

    /**
     * Sends the request to any model. Never blocks.
     *
     * @param observer receives the responses, perhaps before this method returns
     * @throws IllegalStateException if the request was sent before
     */
    void send(ModelResponseObserver observer);

    /**
     * Cancels the request. It ends with {@link ErrorCode#CANCELLED}, at its stage, its waiting thread or its observer:
     * at once while it waits in the queue, otherwise when its execution notices or ends. A request that was not sent
     * yet fails when it is sent, and does not reach the other model. Later calls, and calls after the end, do nothing.
     * Safe for use by any thread; never blocks.
     */
    void cancel();
}
