package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * Replaces inputs and outputs; adds batch size, batching and transaction policy that a configuration lacks.
 *
 * <p>Immutable; starts empty, and empty parts stay as configured. Inputs and outputs replace the configured
 * ones as a whole list each; the log names configured tensors that are others now. The proposed batch size, dynamic
 * batching and the transaction policy apply only where the configuration says nothing about them: a configured value is
 * never changed. A configured batch size beyond the limit is refused.
 *
 * @since 1.0
 */
public final class ModelCompletion {
    /** The completion that changes nothing. */
    public static final ModelCompletion EMPTY = new ModelCompletion(
            OptionalInt.empty(), OptionalInt.empty(), List.of(), List.of(), false, Optional.empty(), Optional.empty());

    private final OptionalInt proposedMaxBatchSize;
    private final OptionalInt maxBatchSizeLimit;
    private final List<TensorSpec> inputs;
    private final List<TensorSpec> outputs;
    private final boolean dynamicBatching;
    private final Optional<String> scheduling;
    private final Optional<Boolean> decoupled;

    private ModelCompletion(
            OptionalInt proposedMaxBatchSize,
            OptionalInt maxBatchSizeLimit,
            List<TensorSpec> inputs,
            List<TensorSpec> outputs,
            boolean dynamicBatching,
            Optional<String> scheduling,
            Optional<Boolean> decoupled) {
        if (proposedMaxBatchSize.isPresent()
                && maxBatchSizeLimit.isPresent()
                && proposedMaxBatchSize.getAsInt() > maxBatchSizeLimit.getAsInt()) {
            throw new IllegalArgumentException("proposedMaxBatchSize: " + proposedMaxBatchSize.getAsInt()
                    + " (expected: at most maxBatchSizeLimit: " + maxBatchSizeLimit.getAsInt() + ")");
        }
        this.proposedMaxBatchSize = proposedMaxBatchSize;
        this.maxBatchSizeLimit = maxBatchSizeLimit;
        this.inputs = List.copyOf(inputs);
        this.outputs = List.copyOf(outputs);
        this.dynamicBatching = dynamicBatching;
        this.scheduling = scheduling;
        this.decoupled = decoupled;
    }

    /**
     * Proposes a largest batch. It applies where the configuration has no {@code max_batch_size}; a 0 that is written
     * there stays, and the tensors get the batch dimension as their first one.
     *
     * @param size the largest batch of the model; 0 if its tensors have no batch dimension
     * @return the changed completion
     * @throws IllegalArgumentException if the size is below 0 or beyond the limit
     */
    public ModelCompletion withProposedMaxBatchSize(int size) {
        return new ModelCompletion(
                notNegative("proposedMaxBatchSize", size),
                maxBatchSizeLimit,
                inputs,
                outputs,
                dynamicBatching,
                scheduling,
                decoupled);
    }

    /**
     * Limits the largest batch. A configuration with a greater {@code max_batch_size} is refused with
     * {@link ErrorCode#INVALID_ARGUMENT}; one without stays without, unless a size is proposed too.
     *
     * @param size the greatest {@code max_batch_size} that the model can have; 0 if its tensors have no batch dimension
     * @return the changed completion
     * @throws IllegalArgumentException if the size is below 0 or below the proposed one
     */
    public ModelCompletion withMaxBatchSizeLimit(int size) {
        return new ModelCompletion(
                proposedMaxBatchSize,
                notNegative("maxBatchSizeLimit", size),
                inputs,
                outputs,
                dynamicBatching,
                scheduling,
                decoupled);
    }

    private static OptionalInt notNegative(String name, int size) {
        if (size < 0) {
            throw new IllegalArgumentException(name + ": " + size + " (expected: >= 0)");
        }
        return OptionalInt.of(size);
    }

    /**
     * Adds a plain input.
     *
     * @param name the name of the tensor
     * @param type the type of its elements
     * @param dims its dimensions without the batch dimension, {@link Shape#VARIABLE} where any size will do
     * @return the changed completion
     * @throws IllegalArgumentException as {@link #withInput(TensorSpec)}
     */
    public ModelCompletion withInput(String name, DataType type, long... dims) {
        return withInput(TensorSpec.of(name, type, Shape.of(dims)));
    }

    /**
     * Adds an input.
     *
     * @param spec the input, without batch dimension if the model batches
     * @return the changed completion
     * @throws IllegalArgumentException if there is an input of this name
     */
    public ModelCompletion withInput(TensorSpec spec) {
        return new ModelCompletion(
                proposedMaxBatchSize,
                maxBatchSizeLimit,
                added("input", inputs, spec),
                outputs,
                dynamicBatching,
                scheduling,
                decoupled);
    }

    /**
     * Sets all inputs.
     *
     * @param specs the inputs, without batch dimension if the model batches
     * @return the changed completion
     */
    public ModelCompletion withInputs(List<TensorSpec> specs) {
        return new ModelCompletion(
                proposedMaxBatchSize, maxBatchSizeLimit, specs, outputs, dynamicBatching, scheduling, decoupled);
    }

    /**
     * Adds a plain output.
     *
     * @param name the name of the tensor
     * @param type the type of its elements
     * @param dims its dimensions without the batch dimension, {@link Shape#VARIABLE} where any size will do
     * @return the changed completion
     * @throws IllegalArgumentException as {@link #withOutput(TensorSpec)}
     */
    public ModelCompletion withOutput(String name, DataType type, long... dims) {
        return withOutput(TensorSpec.of(name, type, Shape.of(dims)));
    }

    /**
     * Adds an output.
     *
     * @param spec the output, without batch dimension if the model batches
     * @return the changed completion
     * @throws IllegalArgumentException if there is an output of this name
     */
    public ModelCompletion withOutput(TensorSpec spec) {
        return new ModelCompletion(
                proposedMaxBatchSize,
                maxBatchSizeLimit,
                inputs,
                added("output", outputs, spec),
                dynamicBatching,
                scheduling,
                decoupled);
    }

    /**
     * Sets all outputs.
     *
     * @param specs the outputs, without batch dimension if the model batches
     * @return the changed completion
     */
    public ModelCompletion withOutputs(List<TensorSpec> specs) {
        return new ModelCompletion(
                proposedMaxBatchSize, maxBatchSizeLimit, inputs, specs, dynamicBatching, scheduling, decoupled);
    }

    private static List<TensorSpec> added(String role, List<TensorSpec> specs, TensorSpec spec) {
        requireNonNull(spec, role);
        if (specs.stream().anyMatch(known -> known.name().equals(spec.name()))) {
            throw new IllegalArgumentException(
                    role + " '" + spec.name() + "': added twice (expected: each " + role + " once)");
        }
        List<TensorSpec> all = new ArrayList<>(specs);
        all.add(spec);
        return all;
    }

    /**
     * Requests dynamic batching, which applies if the configuration chooses no scheduler.
     *
     * @return the changed completion
     */
    public ModelCompletion withDynamicBatching() {
        return new ModelCompletion(
                proposedMaxBatchSize, maxBatchSizeLimit, inputs, outputs, true, scheduling, decoupled);
    }

    /**
     * Adds a scheduler with its options, which applies if the configuration chooses no scheduler.
     *
     * @param json an object with the field {@code dynamic_batching} or {@code sequence_batching}, as in a configuration; if it
     *     is wrong, the load fails with {@link ErrorCode#INVALID_ARGUMENT}
     * @return the changed completion
     */
    public ModelCompletion withScheduling(String json) {
        return new ModelCompletion(
                proposedMaxBatchSize,
                maxBatchSizeLimit,
                inputs,
                outputs,
                dynamicBatching,
                Optional.of(json),
                decoupled);
    }

    /**
     * Sets whether the model sends any number of responses to a request.
     *
     * @param value {@code true} for 0 to n responses, {@code false} for exactly one
     * @return the changed completion
     */
    public ModelCompletion withDecoupled(boolean value) {
        return new ModelCompletion(
                proposedMaxBatchSize,
                maxBatchSizeLimit,
                inputs,
                outputs,
                dynamicBatching,
                scheduling,
                Optional.of(value));
    }

    /**
     * Returns the largest batch for a configuration that has none.
     *
     * @return the size, or empty for none
     */
    public OptionalInt proposedMaxBatchSize() {
        return proposedMaxBatchSize;
    }

    /**
     * Returns the greatest {@code max_batch_size} that a configuration may have.
     *
     * @return the size, or empty for any
     */
    public OptionalInt maxBatchSizeLimit() {
        return maxBatchSizeLimit;
    }

    /**
     * Returns the inputs found.
     *
     * @return all inputs, or an empty list to keep the configured ones
     */
    public List<TensorSpec> inputs() {
        return inputs;
    }

    /**
     * Returns the outputs found.
     *
     * @return all outputs, or an empty list to keep the configured ones
     */
    public List<TensorSpec> outputs() {
        return outputs;
    }

    /**
     * Says whether dynamic batching is requested.
     *
     * @return {@code false} by default
     */
    public boolean dynamicBatching() {
        return dynamicBatching;
    }

    /**
     * Returns the scheduler with its options.
     *
     * @return an object of JSON with one field, or empty to keep the configured scheduler
     */
    public Optional<String> scheduling() {
        return scheduling;
    }

    /**
     * Returns the transaction policy found.
     *
     * @return whether the model is decoupled, or empty to keep the configured value
     */
    public Optional<Boolean> decoupled() {
        return decoupled;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ModelCompletion completion
                && proposedMaxBatchSize.equals(completion.proposedMaxBatchSize)
                && maxBatchSizeLimit.equals(completion.maxBatchSizeLimit)
                && inputs.equals(completion.inputs)
                && outputs.equals(completion.outputs)
                && dynamicBatching == completion.dynamicBatching
                && scheduling.equals(completion.scheduling)
                && decoupled.equals(completion.decoupled);
    }

    @Override
    public int hashCode() {
        return Objects.hash(
                proposedMaxBatchSize, maxBatchSizeLimit, inputs, outputs, dynamicBatching, scheduling, decoupled);
    }

    @Override
    public String toString() {
        return "proposedMaxBatchSize " + proposedMaxBatchSize + ", maxBatchSizeLimit " + maxBatchSizeLimit + ", inputs "
                + inputs + ", outputs " + outputs + ", dynamicBatching " + dynamicBatching + ", scheduling "
                + scheduling + ", decoupled " + decoupled;
    }
}
