package dev.nereid.backend.onnx;

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

    private OnnxValidation(ModelSettings settings, OrtSession session) {
        this.settings = settings;
        this.session = session;
    }

    /**
     * Refuses a configuration that does not agree with its model. The texts are the same as on the reference server.
     */
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
        Optional<OrtTensorInfo> found =
                infos.stream().filter(info -> info.name().equals(spec.name())).findFirst();
        return found.orElseThrow(() -> OnnxErrors.invalid("unexpected inference " + role + " '" + spec.name()
                + "', allowed " + role + "s are: "
                + infos.stream().map(OrtTensorInfo::name).sorted().collect(Collectors.joining(", "))));
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

    /**
     * Returns the names of the inputs of every execution. They are the inputs that are not optional, and derived ones.
     */
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
        Shape shape = OnnxTensors.shape(info);
        if (shape.rank() != 1 || shape.dim(0) != Shape.VARIABLE) {
            throw refused("configuration expects model provides input with shape [-1]  for ragged input '" + spec.name()
                    + "', model provides " + shape);
        }
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

    /**
     * Compares dimensions.
     *
     * @param exact whether dimensions that are open in the model must be open in the configuration, as for outputs
     */
    private void checkDims(TensorSpec spec, OrtTensorInfo info, boolean exact) {
        Shape model = OnnxTensors.shape(info);
        Shape configured = spec.backendDims();
        if (model.rank() == 0) {
            checkScalar(spec, configured);
            if (info.hasShape() && settings.batches()) {
                throw noBatchDimension(spec, model); // it would produce one item for any size of the batch
            }
        } else if (settings.batches()) {
            checkBatch(spec, model, configured, exact);
        } else if (!fits(model, configured, exact)) {
            throw differs(spec, model, configured.rank() + " dimensions (shape " + configured + ")");
        }
    }

    /**
     * Checks the configured shape of a scalar. A model that does not declare the number of dimensions counts as one
     * without, as ONNX Runtime reports it.
     */
    private void checkScalar(TensorSpec spec, Shape configured) {
        for (int i = 0; i < configured.rank(); i++) {
            if (configured.dim(i) != 1) {
                throw refused("scalar tensor '" + spec.name()
                        + "', should only provide 1 in the model configuration when the model doesn't support"
                        + " batching. Model configuration provided: " + configured + ".");
            }
        }
    }

    private void checkBatch(TensorSpec spec, Shape model, Shape configured, boolean exact) {
        if (model.dim(0) != Shape.VARIABLE) {
            throw noBatchDimension(spec, model);
        }
        Shape full = configured.prepend(Shape.VARIABLE);
        if (!fits(model, full, exact)) {
            throw differs(
                    spec,
                    model,
                    full.rank() + " dimensions (an initial batch dimension because max_batch_size > 0 followed by the"
                            + " explicit tensor shape, making complete shape " + full + ")");
        }
    }

    private static boolean fits(Shape model, Shape configured, boolean exact) {
        return exact ? model.equals(configured) : model.accepts(configured);
    }

    private BackendException noBatchDimension(TensorSpec spec, Shape model) {
        return OnnxErrors.invalid("model '" + settings.name() + "', tensor '" + spec.name()
                + "': for the model to support batching the shape should have at least 1 dimension and the first"
                + " dimension must be -1; but shape expected by the model is " + model);
    }

    private BackendException differs(TensorSpec spec, Shape model, String configured) {
        return OnnxErrors.invalid("model '" + settings.name() + "', tensor '" + spec.name() + "': the model expects "
                + model.rank() + " dimensions (shape " + model + ") but the model configuration specifies "
                + configured);
    }

    private BackendException refused(String message) {
        return OnnxErrors.cannotLoad(settings.name(), message);
    }
}
