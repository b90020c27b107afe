package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;

/**
 * A request of an embedding program, under construction. Confined to one thread, and sent once.
 *
 * {@snippet :
 * try (InferResponse response = server.request("twice")
 *         .input("INPUT", Shape.of(1, 3), 1f, 2.5f, -3f)
 *         .sendAndWait()) {
 *     float[] doubled = response.requireOutput("OUTPUT").floats();
 * }
 * }
 *
 * <p>For models that respond once. Requests to decoupled models are sent by {@link InferenceServer#infer}.
 */
public final class ClientRequest {
    /** In bytes; that of the server's own buffers. */
    private static final long ALIGNMENT = 64;

    private final InferenceServer server;
    private final List<InputTensor> inputs = new ArrayList<>();
    private final List<RequestedOutput> outputs = new ArrayList<>();
    private final Map<String, ParameterValue> parameters = new LinkedHashMap<>();
    private ModelRef model;
    private String id = "";
    private RequestOptions options = RequestOptions.DEFAULT;
    private boolean sent;

    ClientRequest(InferenceServer server, ModelRef model) {
        this.server = server;
        this.model = model;
    }

    /**
     * Selects a version of the model.
     *
     * @param version the version; without it, the server selects the latest that is ready
     * @return this request
     */
    public ClientRequest version(long version) {
        model = new ModelRef(model.name(), version);
        return this;
    }

    /**
     * Sets the id of the request.
     *
     * @param text the id, which the response repeats; empty by default
     * @return this request
     */
    public ClientRequest id(String text) {
        id = requireNonNull(text, "text");
        return this;
    }

    /**
     * Adds an input of numbers, which are copied.
     *
     * @param name the name of an input of {@link DataType#FP32}
     * @param shape its dimensions, with batch dimension if the model batches
     * @param numbers the elements in row-major order
     * @return this request
     * @throws IllegalArgumentException if there are more or fewer numbers than the shape has elements
     */
    public ClientRequest input(String name, Shape shape, float... numbers) {
        return input(name, Tensor.ofFloats(shape, numbers));
    }

    /**
     * Adds an input. Memory outside the heap is not copied.
     *
     * @param name the name of an input
     * @param tensor its content, with batch dimension if the model batches. An array of the heap is copied. Other memory
     *     can be read by every thread, and stays valid and unchanged until the response is closed; if there is none, since
     *     the request failed or was cancelled, an execution may still read it: memory of {@link Arena#ofAuto} is safe
     * @return this request
     * @throws IllegalArgumentException if the tensor lies on the host, and has a fence
     */
    public ClientRequest input(String name, Tensor tensor) {
        InputTensor input = InputTensor.of(name, tensor);
        inputs.add(tensor.data().isNative() ? input : input.withData(copyOf(tensor.data())));
        return this;
    }

    private static MemorySegment copyOf(MemorySegment array) {
        return Arena.ofAuto().allocate(array.byteSize(), ALIGNMENT).copyFrom(array);
    }

    /**
     * Requests an output.
     *
     * @param name the name of an output; without any, all outputs are requested
     * @return this request
     */
    public ClientRequest output(String name) {
        return output(RequestedOutput.of(name));
    }

    /**
     * Requests an output in another form.
     *
     * @param output the output, such as its largest elements, or in memory of the caller
     * @return this request
     * @throws IllegalArgumentException for {@link RequestedOutput#inAnyPlace}: its response may come while a device reads
     *     the inputs, and only a request of {@link InferenceServer#infer} says when that has ended
     */
    public ClientRequest output(RequestedOutput output) {
        if (output.anyPlace()) {
            throw new IllegalArgumentException("output '" + Quoted.text(output.name())
                    + "': in any place (expected: on the host, or in memory of the caller; InferenceServer.infer takes"
                    + " others)");
        }
        outputs.add(requireNonNull(output, "output"));
        return this;
    }

    /**
     * Adds a text as a parameter; one of the same name is replaced.
     *
     * @param name the parameter's name
     * @param value its value
     * @return this request
     */
    public ClientRequest parameter(String name, String value) {
        return put(name, new ParameterValue.Text(value));
    }

    /**
     * Adds an integer as a parameter; one of the same name is replaced.
     *
     * @param name the parameter's name
     * @param value its value
     * @return this request
     */
    public ClientRequest parameter(String name, long value) {
        return put(name, new ParameterValue.Int(value));
    }

    /**
     * Adds a number as a parameter; one of the same name is replaced.
     *
     * @param name the parameter's name
     * @param value its value
     * @return this request
     */
    public ClientRequest parameter(String name, double value) {
        return put(name, new ParameterValue.Real(value));
    }

    /**
     * Adds a truth value as a parameter; one of the same name is replaced.
     *
     * @param name the parameter's name
     * @param value its value
     * @return this request
     */
    public ClientRequest parameter(String name, boolean value) {
        return put(name, new ParameterValue.Bool(value));
    }

    private ClientRequest put(String name, ParameterValue value) {
        parameters.put(requireNonNull(name, "name"), value);
        return this;
    }

    /**
     * Sets priority, timeout, deadline and sequence.
     *
     * @param given the options, in place of all earlier ones
     * @return this request
     */
    public ClientRequest options(RequestOptions given) {
        options = requireNonNull(given, "given");
        return this;
    }

    /**
     * Sends the request. A backend with short executions may execute on the calling thread.
     *
     * @return completes with the response, which its receiver closes, or exceptionally with an {@link
     *     InferenceException}; on a thread of the server, perhaps before this method returns, so actions that follow must
     *     be short and never block
     * @throws IllegalStateException if the request was sent before
     */
    public CompletionStage<InferResponse> send() {
        return begin().outcome();
    }

    /**
     * Sends the request, and waits for the response. If the thread is interrupted meanwhile, the request is cancelled.
     *
     * @return the response, which the caller closes
     * @throws InferenceException if the request fails; {@link ErrorCode#INVALID_ARGUMENT} if the model is decoupled and
     *     does not respond exactly once
     * @throws InterruptedException if the thread is interrupted meanwhile
     * @throws IllegalStateException if the thread {@linkplain InferenceServer#mayWait must not wait}, or if the request
     *     was sent before
     */
    public InferResponse sendAndWait() throws InterruptedException {
        if (!server.mayWait()) {
            throw new IllegalStateException("sendAndWait: request to model " + model + " on thread '"
                    + Thread.currentThread().getName()
                    + "', which must not wait, since it calls observers of other requests (expected: send)");
        }
        return begin().await();
    }

    private SingleResponse begin() {
        if (sent) {
            throw new IllegalStateException("request to model " + model + ": sent before (expected: sent once)");
        }
        sent = true;
        SingleResponse single = new SingleResponse(model);
        single.onSent(server.infer(
                new InferRequest(
                        model,
                        id,
                        List.copyOf(inputs),
                        List.copyOf(outputs),
                        Map.copyOf(parameters),
                        options,
                        () -> {}),
                single));
        return single;
    }
}
