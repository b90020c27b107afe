package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.TensorChecks;
import dev.nereid.backend.tensorflow.graph.GraphModel;
import dev.nereid.backend.tensorflow.graph.GraphTensor;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Compares the inputs and outputs of a configuration with its model. Immutable. */
final class TensorFlowValidation {
    private final ModelSettings settings;
    private final GraphModel model;
    private final TensorChecks tensors;

    private TensorFlowValidation(ModelSettings settings, GraphModel model) {
        this.settings = settings;
        this.model = model;
        tensors = new TensorChecks(settings);
    }

    /** Refuses a configuration that does not agree with its model. */
    static void check(ModelSettings settings, GraphModel model) {
        TensorFlowValidation validation = new TensorFlowValidation(settings, model);
        validation.checkNames();
        for (TensorSpec spec : settings.inputs()) {
            validation.checkInput(spec);
        }
        for (BatchInput derived : settings.batchInputs()) {
            for (String name : derived.names()) {
                validation.checkType(name, derived.type(), find(name, model.inputs(), "input"), "input");
            }
        }
        for (TensorSpec spec : settings.outputs()) {
            validation.checkOutput(spec);
        }
        if (settings.sequenceBatching().isPresent()) {
            validation.checkSequences(settings.sequenceBatching().get());
        }
    }

    private static GraphTensor find(String name, List<GraphTensor> tensors, String role) {
        return TensorChecks.find(name, tensors, GraphTensor::name, role);
    }

    /** Refuses a model with an input that would get no value, since it would fail at each request. */
    private void checkNames() {
        Set<String> configured = names(settings);
        Set<String> missing =
                model.inputs().stream().map(GraphTensor::name).collect(Collectors.toCollection(TreeSet::new));
        int provided = missing.size();
        missing.removeAll(configured);
        if (!missing.isEmpty()) {
            throw refused("configuration expects " + configured.size() + " inputs, model provides " + provided
                    + " (not required by the configuration: " + String.join(", ", missing) + ")");
        }
    }

    /** Returns the names of all that a batch may carry: inputs, derived ones, controls and states. */
    static Set<String> names(ModelSettings settings) {
        Stream<String> plain = Stream.concat(
                settings.inputs().stream().map(TensorSpec::name),
                settings.batchInputs().stream().flatMap(input -> input.names().stream()));
        Stream<String> ofSequences = settings.sequenceBatching().stream()
                .flatMap(batching -> Stream.concat(
                        batching.controls().stream().map(ControlInput::name),
                        batching.states().stream().map(StateSpec::inputName)));
        return Stream.concat(plain, ofSequences).collect(Collectors.toCollection(TreeSet::new));
    }

    private void checkInput(TensorSpec spec) {
        if (spec.is(TensorSpec.Trait.OPTIONAL)) {
            throw refused("optional input '" + spec.name() + "' (expected: an input of every request, since a graph"
                    + " has no optional inputs)");
        }
        GraphTensor tensor = find(spec.name(), model.inputs(), "input");
        checkType(spec.name(), spec.type(), tensor, "input");
        Optional<Shape> shape = TensorFlowTensors.shape(tensor);
        if (shape.isEmpty()) {
            return;
        }
        if (!spec.is(TensorSpec.Trait.RAGGED)) {
            checkDims(spec, shape.get());
        } else {
            tensors.checkRagged(spec, shape.get());
        }
    }

    private void checkOutput(TensorSpec spec) {
        GraphTensor tensor = find(spec.name(), model.outputs(), "output");
        checkType(spec.name(), spec.type(), tensor, "output");
        Optional<Shape> shape = TensorFlowTensors.shape(tensor);
        boolean isCut = settings.batchOutputs().stream()
                .anyMatch(output -> output.names().contains(spec.name()));
        if (shape.isPresent() && !isCut) { // the model may produce any shape of a tensor that is cut
            checkDims(spec, shape.get());
        }
    }

    private void checkSequences(SequenceBatching batching) {
        for (ControlInput control : batching.controls()) {
            checkType(control.name(), control.type(), find(control.name(), model.inputs(), "input"), "control input");
        }
        for (StateSpec state : batching.states()) {
            checkState(state, find(state.inputName(), model.inputs(), "input"), "state input");
            checkState(state, find(state.outputName(), model.outputs(), "output"), "state output");
        }
    }

    private void checkState(StateSpec state, GraphTensor tensor, String role) {
        checkType(tensor.name(), state.type(), tensor, role);
        Optional<Shape> shape = TensorFlowTensors.shape(tensor);
        if (shape.isPresent()) {
            checkDims(TensorSpec.of(tensor.name(), state.type(), state.dims()), shape.get());
        }
    }

    private void checkType(String name, DataType configured, GraphTensor tensor, String role) {
        DataType type = TensorFlowTensors.dataType(tensor, role, settings.name());
        if (type != configured) {
            throw refused("configuration expects datatype " + configured.configName() + " for " + role + " '" + name
                    + "', model provides " + type.configName());
        }
    }

    private void checkDims(TensorSpec spec, Shape expected) {
        tensors.checkDims(spec, expected, true, TensorFlowValidation::fits);
    }

    /** A dimension that is open on one side only is checked by TensorFlow and by the server at each request. */
    private static boolean fits(Shape model, Shape configured) {
        if (model.rank() != configured.rank()) {
            return false;
        }
        for (int i = 0; i < model.rank(); i++) {
            boolean isOpen = model.dim(i) == Shape.VARIABLE || configured.dim(i) == Shape.VARIABLE;
            if (!isOpen && model.dim(i) != configured.dim(i)) {
                return false;
            }
        }
        return true;
    }

    private BackendException refused(String message) {
        return tensors.refused(message);
    }
}
