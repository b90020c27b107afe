package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.onnx.ort.OrtElementType;
import dev.nereid.backend.onnx.ort.OrtSession;
import dev.nereid.backend.onnx.ort.OrtTensorInfo;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Maps inputs and outputs of a configuration to inputs and outputs of the model. Immutable.
 *
 * <p>The shape of an output is static if the model fixes all its dimensions except the batch, and all dimensions of
 * every input too: the output shapes of a model with an open input dimension are not reliable, since exporters record
 * the shapes of one example. The same holds for a model with ragged inputs or inputs derived from a batch: its output
 * shapes do not follow from the number of items.
 */
final class OnnxSignature {
    /**
     * An input of the model.
     *
     * @param index its place in the model
     * @param isScalar whether the model is given no dimensions, where requests have dimensions of 1
     * @param isFlat whether the model is given one dimension: it declares a control input without the second one
     */
    record Input(int index, boolean isScalar, boolean isFlat) {}

    /**
     * An output of the model.
     *
     * @param index its place in the model
     * @param staticShape the shape of the response, with an open batch dimension, if it does not depend on the run
     * @param scalarShape the shape that clients see if the model declares no dimensions
     */
    record Output(int index, String name, DataType type, Optional<Shape> staticShape, Optional<Shape> scalarShape) {}

    private final boolean batches;
    private final Map<String, Input> inputs = new HashMap<>();
    private final Map<String, Output> outputs = new HashMap<>();
    private final List<Output> states = new ArrayList<>();

    /** Puts the names together; configuration and model were found to agree by {@link OnnxValidation}. */
    OnnxSignature(ModelSettings settings, OrtSession session) {
        batches = settings.batches();
        List<OrtTensorInfo> modelInputs = session.inputs();
        for (int i = 0; i < modelInputs.size(); i++) {
            OrtTensorInfo info = modelInputs.get(i);
            inputs.put(info.name(), new Input(i, hasNoDimensions(settings, info), isFlat(settings, info)));
        }
        boolean followsItems = settings.batchInputs().isEmpty()
                && settings.inputs().stream().noneMatch(input -> input.is(TensorSpec.Trait.RAGGED));
        boolean inputsFixed = followsItems && modelInputs.stream().allMatch(this::isFixed);
        List<OrtTensorInfo> modelOutputs = session.outputs();
        for (int i = 0; i < modelOutputs.size(); i++) {
            Optional<TensorSpec> spec = settings.output(modelOutputs.get(i).name());
            if (spec.isPresent()) {
                outputs.put(spec.get().name(), output(i, modelOutputs.get(i), spec.get(), inputsFixed));
            }
        }
        List<StateSpec> configured =
                settings.sequenceBatching().map(SequenceBatching::states).orElse(List.of());
        for (StateSpec state : configured) {
            states.add(state(state, modelOutputs, inputsFixed));
        }
    }

    private Output state(StateSpec state, List<OrtTensorInfo> modelOutputs, boolean inputsFixed) {
        for (int i = 0; i < modelOutputs.size(); i++) {
            if (modelOutputs.get(i).name().equals(state.outputName())) {
                TensorSpec spec = TensorSpec.of(state.outputName(), state.type(), state.dims());
                return output(i, modelOutputs.get(i), spec, inputsFixed);
            }
        }
        throw ModelErrors.invalid("state output '" + state.outputName() + "': the model has no output of that name");
    }

    /** Returns whether an input controls sequences and the model declares one dimension for it. */
    private static boolean isFlat(ModelSettings settings, OrtTensorInfo info) {
        return info.dims().size() == 1
                && settings.batches()
                && settings.sequenceBatching().stream()
                        .flatMap(batching -> batching.controls().stream())
                        .anyMatch(control -> control.name().equals(info.name()));
    }

    List<Output> states() {
        return states;
    }

    private Output output(int index, OrtTensorInfo info, TensorSpec spec, boolean inputsFixed) {
        DataType type = spec.type();
        Optional<Shape> scalarShape = info.dims().isEmpty() ? Optional.of(spec.backendDims()) : Optional.empty();
        boolean isKnown = inputsFixed && isFixed(info) && type.isFixedSize();
        Optional<Shape> knownShape =
                isKnown ? Optional.of(scalarShape.orElseGet(() -> OnnxTensors.shape(info))) : Optional.empty();
        return new Output(index, info.name(), type, knownShape, scalarShape);
    }

    /** Returns whether all dimensions except the batch are fixed. */
    private boolean isFixed(OrtTensorInfo info) {
        return info.hasShape() && info.dims().stream().skip(batches ? 1 : 0).noneMatch(dim -> dim == Shape.VARIABLE);
    }

    /**
     * Returns whether tensors are passed to the model without dimensions. As on the reference server, this also holds
     * if the model does not declare their number, unless it has texts or batches.
     */
    private static boolean hasNoDimensions(ModelSettings settings, OrtTensorInfo info) {
        return info.dims().isEmpty()
                && (info.hasShape() || (!settings.batches() && info.type() != OrtElementType.STRING));
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

    /** Returns the shape of an output for a batch, if it is static. */
    Optional<Shape> shape(Output output, int batchSize) {
        return batches ? output.staticShape().map(shape -> shape.withFirst(batchSize)) : output.staticShape();
    }
}
