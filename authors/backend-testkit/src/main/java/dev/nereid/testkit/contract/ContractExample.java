package dev.nereid.testkit.contract;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * One request to a model, with the responses that it gets. Confined to the thread that builds it; not changed
 * afterwards.
 *
 * <p>Tensors have the batch dimension if the model has one. Their memory must stay alive: that of the methods with
 * numbers does.
 */
public final class ContractExample {
    private final Map<String, Tensor> inputs = new LinkedHashMap<>();
    private final Map<String, Object> parameters = new LinkedHashMap<>();
    private final Map<String, Tensor> states = new LinkedHashMap<>();
    private final List<Map<String, Tensor>> responses = new ArrayList<>();
    private Optional<Sequence> sequence = Optional.empty();
    private Optional<String> failure = Optional.empty();
    private Optional<String> onlyOutput = Optional.empty();

    private ContractExample() {}

    /** Starts a request without inputs. */
    public static ContractExample request() {
        return new ContractExample();
    }

    /** Adds an input, also one for the control of sequences or for a state. */
    public ContractExample input(String name, Tensor tensor) {
        inputs.put(name, requireNonNull(tensor, "tensor"));
        return this;
    }

    /** Adds an input of {@link DataType#FP32}. */
    public ContractExample input(String name, Shape shape, float... numbers) {
        return input(name, floats(shape, numbers));
    }

    /** Adds an input of {@link DataType#INT32}. */
    public ContractExample input(String name, Shape shape, int... numbers) {
        return input(name, ints(shape, numbers));
    }

    /** Adds an input of {@link DataType#BYTES}. */
    public ContractExample input(String name, Shape shape, String... texts) {
        return input(name, Tensor.ofStrings(shape, List.of(texts)));
    }

    /** Adds a text as a parameter of the request. */
    public ContractExample parameter(String name, String value) {
        parameters.put(name, value);
        return this;
    }

    /** Adds an integer as a parameter of the request. */
    public ContractExample parameter(String name, long value) {
        parameters.put(name, value);
        return this;
    }

    /** Adds a number as a parameter of the request. */
    public ContractExample parameter(String name, double value) {
        parameters.put(name, value);
        return this;
    }

    /** Adds a truth value as a parameter of the request. */
    public ContractExample parameter(String name, boolean value) {
        parameters.put(name, value);
        return this;
    }

    /** Makes the request part of a sequence. */
    public ContractExample sequence(Sequence position) {
        sequence = Optional.of(position);
        return this;
    }

    /**
     * Adds an expected output to the last expected response. The first output begins the first response.
     *
     * @param tensor its content: numbers with a fraction may differ by rounding
     */
    public ContractExample output(String name, Tensor tensor) {
        if (responses.isEmpty()) {
            responses.add(new LinkedHashMap<>());
        }
        responses.getLast().put(name, requireNonNull(tensor, "tensor"));
        return this;
    }

    /** Adds an expected output of {@link DataType#FP32}. */
    public ContractExample output(String name, Shape shape, float... numbers) {
        return output(name, floats(shape, numbers));
    }

    /** Adds an expected output of {@link DataType#INT32}. */
    public ContractExample output(String name, Shape shape, int... numbers) {
        return output(name, ints(shape, numbers));
    }

    /** Begins the next expected response of a decoupled model. */
    public ContractExample response() {
        responses.add(new LinkedHashMap<>());
        return this;
    }

    /**
     * Adds the expected new value of a state.
     *
     * @param output the name of the state's output
     */
    public ContractExample state(String output, Tensor tensor) {
        states.put(output, requireNonNull(tensor, "tensor"));
        return this;
    }

    /**
     * Expects that the request fails, and alone in its batch. That of a decoupled model fails after the expected responses,
     * if there are any.
     *
     * @param text a part of the message
     */
    public ContractExample failure(String text) {
        failure = Optional.of(text);
        return this;
    }

    /**
     * Creates a tensor of {@link DataType#FP32}.
     *
     * @return the tensor, in memory that is collected as garbage
     */
    public static Tensor floats(Shape shape, float... numbers) {
        return Tensor.of(DataType.FP32, shape, Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, numbers));
    }

    /**
     * Creates a tensor of {@link DataType#INT32}.
     *
     * @return the tensor, in memory that is collected as garbage
     */
    public static Tensor ints(Shape shape, int... numbers) {
        return Tensor.of(DataType.INT32, shape, Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, numbers));
    }

    Map<String, Tensor> inputs() {
        return inputs;
    }

    Parameters parameters() {
        return Parameters.of(parameters);
    }

    Map<String, Tensor> states() {
        return states;
    }

    List<Map<String, Tensor>> responses() {
        return responses;
    }

    Optional<Sequence> sequence() {
        return sequence;
    }

    Optional<String> failure() {
        return failure;
    }

    /** Returns the same request without an input, and without expectations. */
    ContractExample without(String input) {
        ContractExample copy = new ContractExample();
        copy.inputs.putAll(inputs);
        copy.inputs.remove(input);
        copy.parameters.putAll(parameters);
        copy.sequence = sequence;
        return copy;
    }

    /** Returns the name of the only output that is requested; empty for all. */
    Optional<String> onlyOutput() {
        return onlyOutput;
    }

    /** Returns the same request for one of its outputs, with the expectations of that one. */
    ContractExample withOnlyOutput(String output) {
        ContractExample copy = copy();
        copy.onlyOutput = Optional.of(output);
        copy.responses.forEach(outputs -> outputs.keySet().retainAll(Set.of(output)));
        return copy;
    }

    /** Returns the same request with the given inputs where it lacks them. */
    ContractExample withDefaults(Map<String, Tensor> more) {
        ContractExample copy = copy();
        more.forEach(copy.inputs::putIfAbsent);
        return copy;
    }

    /** Returns the same request with other inputs. */
    ContractExample withInputs(Map<String, Tensor> changed) {
        ContractExample copy = copy();
        copy.inputs.putAll(changed);
        return copy;
    }

    private ContractExample copy() {
        ContractExample copy = without("");
        responses.forEach(outputs -> copy.responses.add(new LinkedHashMap<>(outputs)));
        copy.states.putAll(states);
        copy.failure = failure;
        copy.onlyOutput = onlyOutput;
        return copy;
    }
}
