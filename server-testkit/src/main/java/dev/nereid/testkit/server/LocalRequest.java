package dev.nereid.testkit.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * A request to a model of a {@link LocalServer}. Confined to the thread that builds it; may be sent any number of times.
 *
 * <p>Inputs without a shape are one item: the dimensions of the configuration, with a batch dimension of 1 if the model has
 * batches. Inputs with a shape have all dimensions in it.
 */
public final class LocalRequest {
    private final Map<String, LocalInput> inputs = new LinkedHashMap<>();
    private final Map<String, ParameterValue> parameters = new LinkedHashMap<>();
    private final List<RequestedOutput> outputs = new ArrayList<>();
    private Optional<Sequence> sequence = Optional.empty();
    private String id = "";
    private long version = ModelRef.LATEST;
    private long priority;
    private long timeoutMicros;

    private LocalRequest() {}

    /**
     * Starts a request without inputs.
     *
     * @return the request
     */
    public static LocalRequest request() {
        return new LocalRequest();
    }

    /**
     * Starts a request with one input of {@link DataType#FP32}.
     *
     * @param input its name
     * @param elements its elements
     * @return the request
     */
    public static LocalRequest of(String input, float... elements) {
        return request().input(input, elements);
    }

    /**
     * Starts a request with one input of {@link DataType#BYTES}.
     *
     * @param input its name
     * @param elements its elements
     * @return the request
     */
    public static LocalRequest of(String input, String... elements) {
        return request().input(input, elements);
    }

    /**
     * Adds an input of {@link DataType#FP32}.
     *
     * @param name its name
     * @param elements its elements
     * @return this request
     */
    public LocalRequest input(String name, float... elements) {
        return floats(name, Optional.empty(), elements);
    }

    /**
     * Adds an input of {@link DataType#FP32}.
     *
     * @param name its name
     * @param shape its shape
     * @param elements its elements
     * @return this request
     */
    public LocalRequest input(String name, Shape shape, float... elements) {
        return floats(name, Optional.of(shape), elements);
    }

    private LocalRequest floats(String name, Optional<Shape> shape, float... elements) {
        return input(
                name,
                LocalInput.of(
                        DataType.FP32,
                        elements.length,
                        shape,
                        arena -> arena.allocateFrom(ValueLayout.JAVA_FLOAT, elements)));
    }

    /**
     * Adds an input of {@link DataType#INT32}.
     *
     * @param name its name
     * @param elements its elements
     * @return this request
     */
    public LocalRequest input(String name, int... elements) {
        return ints(name, Optional.empty(), elements);
    }

    /**
     * Adds an input of {@link DataType#INT32}.
     *
     * @param name its name
     * @param shape its shape
     * @param elements its elements
     * @return this request
     */
    public LocalRequest input(String name, Shape shape, int... elements) {
        return ints(name, Optional.of(shape), elements);
    }

    private LocalRequest ints(String name, Optional<Shape> shape, int... elements) {
        return input(
                name,
                LocalInput.of(
                        DataType.INT32,
                        elements.length,
                        shape,
                        arena -> arena.allocateFrom(ValueLayout.JAVA_INT, elements)));
    }

    /**
     * Adds an input of {@link DataType#INT64}.
     *
     * @param name its name
     * @param elements its elements
     * @return this request
     */
    public LocalRequest input(String name, long... elements) {
        return input(
                name,
                LocalInput.of(
                        DataType.INT64,
                        elements.length,
                        Optional.empty(),
                        arena -> arena.allocateFrom(ValueLayout.JAVA_LONG, elements)));
    }

    /**
     * Adds an input of {@link DataType#BYTES} with texts.
     *
     * @param name its name
     * @param elements its elements, encoded as UTF-8
     * @return this request
     */
    public LocalRequest input(String name, String... elements) {
        return input(
                name, Arrays.stream(elements).map(text -> text.getBytes(UTF_8)).toArray(byte[][]::new));
    }

    /**
     * Adds an input of {@link DataType#BYTES}, such as files.
     *
     * @param name its name
     * @param elements its elements
     * @return this request
     */
    public LocalRequest input(String name, byte[]... elements) {
        return input(name, LocalInput.of(Optional.empty(), List.of(elements)));
    }

    /**
     * Adds an input of any type.
     *
     * @param name its name
     * @param tensor its content, with the batch dimension if the model has batches; copied when the request is sent
     * @return this request
     */
    public LocalRequest input(String name, Tensor tensor) {
        return input(name, LocalInput.of(tensor));
    }

    private LocalRequest input(String name, LocalInput input) {
        inputs.put(requireNonNull(name, "name"), input);
        return this;
    }

    /**
     * Requests certain outputs. All of them are otherwise.
     *
     * @param names the names of the outputs
     * @return this request
     */
    public LocalRequest outputs(String... names) {
        Arrays.stream(names).map(RequestedOutput::of).forEach(outputs::add);
        return this;
    }

    /**
     * Adds a text as a parameter.
     *
     * @param name its name
     * @param value its value
     * @return this request
     */
    public LocalRequest parameter(String name, String value) {
        parameters.put(name, new ParameterValue.Text(value));
        return this;
    }

    /**
     * Adds an integer as a parameter.
     *
     * @param name its name
     * @param value its value
     * @return this request
     */
    public LocalRequest parameter(String name, long value) {
        parameters.put(name, new ParameterValue.Int(value));
        return this;
    }

    /**
     * Adds a number as a parameter.
     *
     * @param name its name
     * @param value its value
     * @return this request
     */
    public LocalRequest parameter(String name, double value) {
        parameters.put(name, new ParameterValue.Real(value));
        return this;
    }

    /**
     * Adds a truth value as a parameter.
     *
     * @param name its name
     * @param value its value
     * @return this request
     */
    public LocalRequest parameter(String name, boolean value) {
        parameters.put(name, new ParameterValue.Bool(value));
        return this;
    }

    /**
     * Makes the request part of a sequence.
     *
     * @param sequenceId the number of the sequence
     * @param start whether it begins the sequence
     * @param end whether it ends the sequence
     * @return this request
     */
    public LocalRequest sequence(long sequenceId, boolean start, boolean end) {
        sequence = Optional.of(new Sequence(new Sequence.Id.Numeric(sequenceId), start, end));
        return this;
    }

    /**
     * Makes the request part of a sequence with a text as its id.
     *
     * @param sequenceId the number of the sequence
     * @param start whether it begins the sequence
     * @param end whether it ends the sequence
     * @return this request
     */
    public LocalRequest sequence(String sequenceId, boolean start, boolean end) {
        sequence = Optional.of(new Sequence(new Sequence.Id.Text(sequenceId), start, end));
        return this;
    }

    /**
     * Names the request.
     *
     * @param text the id of the request
     * @return this request
     */
    public LocalRequest id(String text) {
        id = text;
        return this;
    }

    /**
     * Sends the request to one version of the model.
     *
     * @param number the version; the latest one by default
     * @return this request
     */
    public LocalRequest version(long number) {
        version = number;
        return this;
    }

    /**
     * Sets the priority.
     *
     * @param level 1 for the highest; 0 for the model's default
     * @return this request
     */
    public LocalRequest priority(long level) {
        priority = level;
        return this;
    }

    /**
     * Sets how long the request may wait in a queue.
     *
     * @param limit the limit
     * @return this request
     */
    public LocalRequest timeout(Duration limit) {
        timeoutMicros = limit.toNanos() / 1000;
        return this;
    }

    Map<String, LocalInput> inputs() {
        return inputs;
    }

    ModelRef model(String name) {
        return new ModelRef(name, version);
    }

    /** Returns the request as the server receives it. */
    InferRequest received(String name, List<InputTensor> tensors, Runnable release) {
        return new InferRequest(
                model(name),
                id,
                List.copyOf(tensors),
                List.copyOf(outputs),
                Map.copyOf(parameters),
                new RequestOptions(priority, timeoutMicros, OptionalLong.empty(), sequence),
                release);
    }
}
