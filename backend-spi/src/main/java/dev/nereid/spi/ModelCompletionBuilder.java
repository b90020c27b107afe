package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * Builds {@link ModelCompletion}, tensor by tensor. Confined to one thread.
 *
 * @since 1.0
 */
public final class ModelCompletionBuilder {
    private final List<TensorSpec> inputs = new ArrayList<>();
    private final List<TensorSpec> outputs = new ArrayList<>();
    private OptionalInt maxBatchSize = OptionalInt.empty();
    private boolean dynamicBatching;
    private Optional<Boolean> decoupled = Optional.empty();

    ModelCompletionBuilder() {}

    /**
     * Sets {@link ModelCompletion#maxBatchSize()}.
     *
     * @param size the largest batch of the model; 0 if its tensors have no batch dimension
     * @return this builder
     * @throws IllegalArgumentException if the size is below 0
     */
    public ModelCompletionBuilder maxBatchSize(int size) {
        if (size < 0) {
            throw new IllegalArgumentException("maxBatchSize: " + size + " (expected: >= 0)");
        }
        maxBatchSize = OptionalInt.of(size);
        return this;
    }

    /**
     * Adds a plain input.
     *
     * @param name the name of the tensor
     * @param type the type of its elements
     * @param dims its dimensions without the batch dimension, {@link Shape#VARIABLE} where any size will do
     * @return this builder
     * @throws IllegalArgumentException as {@link #input(TensorSpec)}
     */
    public ModelCompletionBuilder input(String name, DataType type, long... dims) {
        return input(TensorSpec.of(name, type, Shape.of(dims)));
    }

    /**
     * Adds an input.
     *
     * @param spec the input, without batch dimension if the model batches
     * @return this builder
     * @throws IllegalArgumentException if there is an input of this name
     */
    public ModelCompletionBuilder input(TensorSpec spec) {
        add("input", inputs, spec);
        return this;
    }

    /**
     * Adds a plain output.
     *
     * @param name the name of the tensor
     * @param type the type of its elements
     * @param dims its dimensions without the batch dimension, {@link Shape#VARIABLE} where any size will do
     * @return this builder
     * @throws IllegalArgumentException as {@link #output(TensorSpec)}
     */
    public ModelCompletionBuilder output(String name, DataType type, long... dims) {
        return output(TensorSpec.of(name, type, Shape.of(dims)));
    }

    /**
     * Adds an output.
     *
     * @param spec the output, without batch dimension if the model batches
     * @return this builder
     * @throws IllegalArgumentException if there is an output of this name
     */
    public ModelCompletionBuilder output(TensorSpec spec) {
        add("output", outputs, spec);
        return this;
    }

    private static void add(String role, List<TensorSpec> specs, TensorSpec added) {
        requireNonNull(added, role);
        if (specs.stream().anyMatch(spec -> spec.name().equals(added.name()))) {
            throw new IllegalArgumentException(
                    role + " '" + added.name() + "': added twice (expected: each " + role + " once)");
        }
        specs.add(added);
    }

    /**
     * Requests {@link ModelCompletion#dynamicBatching()}.
     *
     * @return this builder
     */
    public ModelCompletionBuilder dynamicBatching() {
        dynamicBatching = true;
        return this;
    }

    /**
     * Sets {@link ModelCompletion#decoupled()}.
     *
     * @param value {@code true} for 0 to n responses, {@code false} for exactly one
     * @return this builder
     */
    public ModelCompletionBuilder decoupled(boolean value) {
        decoupled = Optional.of(value);
        return this;
    }

    /**
     * Creates the completion.
     *
     * @return the completion
     */
    public ModelCompletion build() {
        return new ModelCompletion(maxBatchSize, inputs, outputs, dynamicBatching, decoupled);
    }
}
