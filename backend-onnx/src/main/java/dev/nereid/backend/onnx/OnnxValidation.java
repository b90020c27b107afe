package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.TensorChecks;
import dev.nereid.backend.onnx.ort.OrtSession;
import dev.nereid.backend.onnx.ort.OrtTensorInfo;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Compares the inputs and outputs of a configuration with its model. Immutable. */
final class OnnxValidation {
    private final ModelSettings settings;
    private final OrtSession session;
    private final TensorChecks tensors;

    private OnnxValidation(ModelSettings settings, OrtSession session) {
        this.settings = settings;
        this.session = session;
        tensors = new TensorChecks(settings);
    }

    /** Refuses a configuration that does not agree with its model, with the texts of the reference server. */
    static void check(ModelSettings settings, OrtSession session) {
        OnnxValidation validation = new OnnxValidation(settings, session);
        OnnxTensors.requireTensors(session.inputs());
        validation.checkCount();
        validation.checkInputs();
        OnnxTensors.requireTensors(session.outputs());
        validation.checkOutputs();
    }

    private void checkInputs() {
        for (TensorSpec spec : settings.inputs()) {
            checkOptional(spec);
            OrtTensorInfo info = find(spec, session.inputs(), "input");
            checkType(spec, info, "input");
            if (spec.is(TensorSpec.Trait.RAGGED)) {
                checkRagged(spec, info);
            } else {
                checkDims(spec, info, false);
            }
        }
        for (BatchInput derived : settings.batchInputs()) {
            for (TensorSpec spec : specs(derived)) {
                OrtTensorInfo info = find(spec, session.inputs(), "input");
                checkType(spec, info, "input");
                checkDerived(spec, info);
            }
        }
        checkComplete();
    }

    private void checkOutputs() {
        for (TensorSpec spec : settings.outputs()) {
            OrtTensorInfo info = find(spec, session.outputs(), "output");
            checkType(spec, info, "output");
            boolean isCut = settings.batchOutputs().stream()
                    .anyMatch(output -> output.names().contains(spec.name()));
            if (!isCut) { // the model may produce any shape of a tensor that is cut
                checkDims(spec, info, true);
            }
        }
    }

    private static OrtTensorInfo find(TensorSpec spec, List<OrtTensorInfo> infos, String role) {
        return TensorChecks.find(spec.name(), infos, OrtTensorInfo::name, role);
    }

    /** Refuses a configuration with more or fewer inputs than the model needs. Optional inputs do not count. */
    private void checkCount() {
        int provided = session.requiredInputs().size();
        int expected = configuredInputs().size();
        if (expected > provided || (expected < provided && !hasSequences())) {
            Set<String> configured = Set.copyOf(configuredInputs());
            Set<String> model =
                    session.requiredInputs().stream().map(OrtTensorInfo::name).collect(Collectors.toSet());
            throw wrongCount(difference(model, configured), difference(configured, model));
        }
    }

    /** Returns the names of the inputs of every execution: derived ones, and all that are not optional. */
    private List<String> configuredInputs() {
        return Stream.concat(
                        settings.inputs().stream()
                                .filter(spec -> !spec.is(TensorSpec.Trait.OPTIONAL))
                                .map(TensorSpec::name),
                        settings.batchInputs().stream().flatMap(input -> input.names().stream()))
                .toList();
    }

    private static List<String> difference(Set<String> names, Set<String> without) {
        return names.stream().filter(name -> !without.contains(name)).sorted().toList();
    }

    private BackendException wrongCount(List<String> missing, List<String> surplus) {
        String detail = missing.isEmpty()
                ? "not needed by the model: " + String.join(", ", surplus)
                : "not required by the configuration: " + String.join(", ", missing);
        return refused("configuration expects " + configuredInputs().size() + " inputs, model provides "
                + session.requiredInputs().size() + " (" + detail + ")");
    }

    private boolean hasSequences() {
        return settings.value("sequence_batching").isPresent();
    }

    /**
     * Refuses a model with an input that would receive no value. Control and state tensors of sequences are configured
     * elsewhere than inputs: every tensor named by a configuration of sequences counts as provided.
     */
    private void checkComplete() {
        List<String> configured = configuredInputs();
        List<String> ofSequences = Stream.of("control_input.name", "state.input_name")
                .flatMap(tensor -> settings.values("sequence_batching." + tensor).stream())
                .toList();
        List<String> missing = session.requiredInputs().stream()
                .map(OrtTensorInfo::name)
                .filter(name -> !configured.contains(name) && !ofSequences.contains(name))
                .toList();
        if (!missing.isEmpty()) {
            throw wrongCount(missing, List.of());
        }
    }

    private void checkOptional(TensorSpec spec) {
        if (spec.is(TensorSpec.Trait.OPTIONAL) && settings.batches()) {
            throw refused("optional input '" + spec.name() + "' is not supported for models that support batching");
        }
    }

    private void checkType(TensorSpec spec, OrtTensorInfo info, String role) {
        Optional<DataType> type = OnnxTensors.dataType(info.type());
        if (!type.equals(Optional.of(spec.type()))) {
            throw refused("configuration expects datatype " + spec.type().configName() + " for " + role + " '"
                    + spec.name() + "', model provides TYPE_"
                    + type.map(DataType::name).orElse("<invalid>"));
        }
    }

    private void checkRagged(TensorSpec spec, OrtTensorInfo info) {
        if (spec.is(TensorSpec.Trait.OPTIONAL)) {
            throw refused("configuration expects model provides input with shape [-1] for ragged input '" + spec.name()
                    + "', which is not supported for optional input");
        }
        tensors.checkRagged(spec, OnnxTensors.shape(info));
    }

    /** Describes a derived input under each of its names. The shape is the one that it has in a batch. */
    private List<TensorSpec> specs(BatchInput derived) {
        Shape shape = switch (derived.kind()) {
            case ELEMENT_COUNT,
                    ACCUMULATED_ELEMENT_COUNT,
                    ACCUMULATED_ELEMENT_COUNT_WITH_ZERO,
                    MAX_ELEMENT_COUNT_AS_SHAPE,
                    ITEM_SHAPE_FLATTEN -> Shape.of(Shape.VARIABLE);
            case ITEM_SHAPE -> Shape.of(Shape.VARIABLE, sourceRank(derived));
        };
        return derived.names().stream()
                .map(name -> TensorSpec.of(name, derived.type(), shape))
                .toList();
    }

    private long sourceRank(BatchInput derived) {
        return settings.input(derived.source())
                .map(source -> (long) source.backendDims().rank())
                .orElse(Shape.VARIABLE);
    }

    private void checkDerived(TensorSpec spec, OrtTensorInfo info) {
        if (info.hasShape() && !OnnxTensors.shape(info).accepts(spec.dims())) {
            throw refused("configuration expects model provides input with shape " + spec.dims() + " for batch input '"
                    + spec.name() + "', model provides " + OnnxTensors.shape(info));
        }
    }

    /** Compares dimensions; if {@code exact}, as for outputs, those open in the model must be open as configured. */
    private void checkDims(TensorSpec spec, OrtTensorInfo info, boolean exact) {
        tensors.checkDims(
                spec,
                OnnxTensors.shape(info),
                info.hasShape(),
                (model, configured) -> exact ? model.equals(configured) : model.accepts(configured));
    }

    private BackendException refused(String message) {
        return tensors.refused(message);
    }
}
