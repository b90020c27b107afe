package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Which tensor of an engine is which input, output or state of the configuration. Immutable. */
record Bindings(List<Binding> inputs, List<Binding> outputs, boolean hasStates) {
    /** Role of a tensor for the server. */
    enum Role {
        /** An input or output of requests. */
        CLIENT,
        /** The present or next value of a state. */
        STATE,
        /** An output that the configuration does not have. */
        NONE
    }

    /** A tensor, with the server's type of its elements. */
    record Binding(EngineTensor tensor, DataType type, Role role) {
        String name() {
            return tensor.name();
        }
    }

    /** Compares an engine with a configuration; throws a {@link BackendException} with the first difference. */
    static Bindings of(List<EngineTensor> tensors, ModelSettings settings) {
        Map<String, StateSpec> stateInputs = new HashMap<>();
        Map<String, StateSpec> stateOutputs = new HashMap<>();
        for (StateSpec state :
                settings.sequenceBatching().map(SequenceBatching::states).orElse(List.of())) {
            stateInputs.put(state.inputName(), state);
            stateOutputs.put(state.outputName(), state);
        }
        List<Binding> inputs = new ArrayList<>();
        List<Binding> outputs = new ArrayList<>();
        Set<String> found = new HashSet<>();
        for (EngineTensor tensor : tensors) {
            found.add((tensor.isInput() ? "i" : "o") + tensor.name());
            TensorFormats.check(tensor, settings);
            if (tensor.isInput()) {
                inputs.add(input(tensor, settings, stateInputs));
            } else {
                outputs.add(output(tensor, settings, stateOutputs));
            }
        }
        requireAll(settings, found);
        return new Bindings(inputs, outputs, !stateInputs.isEmpty());
    }

    private static Binding input(EngineTensor tensor, ModelSettings settings, Map<String, StateSpec> states) {
        DataType type = EngineTypes.of(tensor);
        StateSpec state = states.get(tensor.name());
        if (state != null) {
            check(tensor, type, state.type(), state.dims(), settings);
            return new Binding(tensor, type, Role.STATE);
        }
        TensorSpec spec = settings.input(tensor.name()).orElse(null);
        if (spec == null) {
            if (settings.batchInputs().stream().anyMatch(input -> input.names().contains(tensor.name()))
                    || isControl(settings, tensor.name())) {
                return new Binding(tensor, type, Role.CLIENT);
            }
            throw TensorRtErrors.invalid("model '" + settings.name() + "': the engine has the input '" + tensor.name()
                    + "' " + tensor.shape() + ", which the configuration lacks");
        }
        if (spec.is(TensorSpec.Trait.SHAPE_TENSOR) != tensor.isShapeTensor()) {
            throw TensorRtErrors.invalid("input '" + tensor.name() + "' of model '" + settings.name()
                    + "': is_shape_tensor: " + !tensor.isShapeTensor() + " (expected: " + tensor.isShapeTensor()
                    + ", as in the engine)");
        }
        if (settings.batches() && spec.is(TensorSpec.Trait.RAGGED)) {
            checkRagged(tensor, type, spec.type(), settings);
        } else {
            check(tensor, type, spec.type(), spec.backendDims(), settings);
        }
        return new Binding(tensor, type, Role.CLIENT);
    }

    /** A ragged input is flat: the elements of all requests one after the other, without a batch dimension. */
    private static void checkRagged(EngineTensor tensor, DataType type, DataType configured, ModelSettings settings) {
        checkType(tensor, type, configured, settings);
        if (!tensor.shape().equals(Shape.of(Shape.VARIABLE))) {
            throw TensorRtErrors.invalid("input '" + tensor.name() + "' of model '" + settings.name()
                    + "': the engine has " + tensor.shape() + " (expected: [-1], since allow_ragged_batch is true: the"
                    + " elements of all requests in one dimension)");
        }
    }

    private static boolean isControl(ModelSettings settings, String name) {
        return settings.sequenceBatching().stream()
                .flatMap(sequences -> sequences.controls().stream())
                .anyMatch(control -> control.name().equals(name));
    }

    private static Binding output(EngineTensor tensor, ModelSettings settings, Map<String, StateSpec> states) {
        DataType type = EngineTypes.of(tensor);
        TensorSpec spec = settings.output(tensor.name()).orElse(null);
        if (spec != null) {
            check(tensor, type, spec.type(), spec.backendDims(), settings);
        }
        StateSpec state = states.get(tensor.name());
        if (state != null) {
            check(tensor, type, state.type(), state.dims(), settings);
            return new Binding(tensor, type, Role.STATE);
        }
        return new Binding(tensor, type, spec == null ? Role.NONE : Role.CLIENT);
    }

    private static void check(
            EngineTensor tensor, DataType type, DataType configured, Shape dims, ModelSettings settings) {
        String name = "tensor '" + tensor.name() + "' of model '" + settings.name() + "': ";
        checkType(tensor, type, configured, settings);
        boolean batched = settings.batches() && !tensor.isShapeTensor();
        Shape shape = tensor.shape();
        if (batched && (shape.rank() == 0 || shape.dim(0) != Shape.VARIABLE)) {
            throw TensorRtErrors.invalid(name + "the engine has " + shape
                    + " (expected: a variable first dimension, since max_batch_size is " + settings.maxBatchSize()
                    + ")");
        }
        Shape own = batched ? shape.dropFirst() : shape;
        boolean fits = own.rank() == dims.rank();
        for (int i = 0; fits && i < own.rank(); i++) {
            fits = own.dim(i) == dims.dim(i) || own.dim(i) == Shape.VARIABLE || dims.dim(i) == Shape.VARIABLE;
        }
        if (!fits && !(own.rank() == 0 && dims.equals(Shape.of(1)))) {
            throw TensorRtErrors.invalid(name + "dims " + dims + " (expected: " + own + ", as in the engine)");
        }
    }

    private static void checkType(EngineTensor tensor, DataType type, DataType configured, ModelSettings settings) {
        if (type != configured) {
            throw TensorRtErrors.invalid("tensor '" + tensor.name() + "' of model '" + settings.name() + "': type "
                    + configured + " (expected: " + type + ", as in the engine)");
        }
    }

    private static void requireAll(ModelSettings settings, Set<String> found) {
        for (TensorSpec input : settings.inputs()) {
            if (!found.contains("i" + input.name())) {
                throw TensorRtErrors.invalid("model '" + settings.name() + "': the configuration has the input '"
                        + input.name() + "', which the engine lacks");
            }
        }
        for (TensorSpec output : settings.outputs()) {
            if (!found.contains("o" + output.name())) {
                throw TensorRtErrors.invalid("model '" + settings.name() + "': the configuration has the output '"
                        + output.name() + "', which the engine lacks");
            }
        }
    }
}
