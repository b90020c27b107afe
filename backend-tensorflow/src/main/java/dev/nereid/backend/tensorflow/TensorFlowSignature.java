package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.tensorflow.graph.GraphModel;
import dev.nereid.backend.tensorflow.graph.GraphTensor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Maps the names of a configuration to the tensors of the graph. Immutable. */
final class TensorFlowSignature {
    /**
     * An input of the model.
     *
     * @param index its place among the tensors that are fed
     * @param isScalar whether the model is given no dimensions, where requests have dimensions of 1
     * @param isFlat whether the model is given one dimension: it declares a control input without the second one
     */
    record Input(int index, boolean isScalar, boolean isFlat) {}

    /**
     * An output of the model.
     *
     * @param index its place among the tensors that can be fetched
     * @param scalarShape the shape that clients see if the model declares no dimensions
     */
    record Output(int index, String name, DataType type, Optional<Shape> scalarShape) {}

    private final List<String> fed;
    private final List<String> fetched;
    private final Map<String, Input> inputs = new HashMap<>();
    private final Map<String, Output> outputs = new LinkedHashMap<>();
    private final List<Output> states = new ArrayList<>();

    /** Puts the names together; configuration and model were found to agree by {@link TensorFlowValidation}. */
    TensorFlowSignature(ModelSettings settings, GraphModel model) {
        fed = model.inputs().stream().map(GraphTensor::tensor).toList();
        fetched = model.outputs().stream().map(GraphTensor::tensor).toList();
        for (int i = 0; i < model.inputs().size(); i++) {
            GraphTensor tensor = model.inputs().get(i);
            int rank = tensor.shape().map(dims -> dims.length).orElse(-1);
            inputs.put(tensor.name(), new Input(i, rank == 0, rank == 1 && isControl(settings, tensor.name())));
        }
        for (int i = 0; i < model.outputs().size(); i++) {
            GraphTensor tensor = model.outputs().get(i);
            int index = i;
            settings.output(tensor.name())
                    .ifPresent(
                            spec -> outputs.put(spec.name(), output(index, tensor, spec.type(), spec.backendDims())));
        }
        for (StateSpec state :
                settings.sequenceBatching().map(SequenceBatching::states).orElse(List.of())) {
            states.add(state(state, model));
        }
    }

    private static Output state(StateSpec state, GraphModel model) {
        for (int i = 0; i < model.outputs().size(); i++) {
            GraphTensor tensor = model.outputs().get(i);
            if (tensor.name().equals(state.outputName())) {
                return output(i, tensor, state.type(), state.dims());
            }
        }
        throw ModelErrors.invalid("state output '" + state.outputName() + "': the model has no output of that name");
    }

    private static Output output(int index, GraphTensor tensor, DataType type, Shape dims) {
        boolean isScalar = tensor.shape().filter(shape -> shape.length == 0).isPresent();
        return new Output(index, tensor.name(), type, isScalar ? Optional.of(dims) : Optional.empty());
    }

    private static boolean isControl(ModelSettings settings, String name) {
        return settings.batches()
                && settings.sequenceBatching().stream()
                        .flatMap(batching -> batching.controls().stream())
                        .anyMatch(control -> control.name().equals(name));
    }

    /** Returns the tensors to feed, in the order of {@link Input#index}. */
    List<String> fed() {
        return fed;
    }

    /** Returns the tensors that can be fetched, in the order of {@link Output#index}. */
    List<String> fetched() {
        return fetched;
    }

    List<Output> states() {
        return states;
    }

    Iterable<Output> outputs() {
        return outputs.values();
    }

    Input input(String name) {
        Input input = inputs.get(name);
        if (input == null) {
            throw ModelErrors.unknown("input", name);
        }
        return input;
    }

    Output output(String name) {
        Output output = outputs.get(name);
        if (output == null) {
            throw ModelErrors.unknown("output", name);
        }
        return output;
    }
}
