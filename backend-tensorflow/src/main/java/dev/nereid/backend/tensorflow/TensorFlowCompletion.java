package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.Completions;
import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.tensorflow.graph.GraphModel;
import dev.nereid.backend.tensorflow.graph.GraphTensor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Completes a configuration from the signature of a model. Stateless. */
final class TensorFlowCompletion {
    private TensorFlowCompletion() {}

    /**
     * Completes a configuration. Returns batching as far as the model allows it, by default of {@code
     * defaultMaxBatchSize}, and the inputs or outputs that the configuration lacks.
     */
    static ModelCompletion of(ModelContext context, GraphModel model, int defaultMaxBatchSize) {
        ModelSettings settings = context.settings();
        int maxBatchSize = maxBatchSize(settings, model, Math.max(0, defaultMaxBatchSize));
        boolean batches = maxBatchSize > 0;
        ModelCompletion completion = ModelCompletion.EMPTY.withProposedMaxBatchSize(maxBatchSize);
        if (Completions.lacksInputs(settings)) {
            completion = completion.withInputs(
                    specs(without(model.inputs(), namesOfSequences(settings, true)), "input", settings, batches));
        }
        if (settings.outputs().isEmpty()) {
            completion = completion.withOutputs(
                    specs(without(model.outputs(), namesOfSequences(settings, false)), "output", settings, batches));
        }
        return maxBatchSize > 1 ? completion.withDynamicBatching() : completion;
    }

    /** The names of controls and states, which are configured elsewhere than inputs and outputs. */
    private static Set<String> namesOfSequences(ModelSettings settings, boolean inputs) {
        Set<String> names = new HashSet<>();
        Optional<SequenceBatching> sequences = settings.sequenceBatching();
        sequences.ifPresent(batching -> {
            batching.states().forEach(state -> names.add(inputs ? state.inputName() : state.outputName()));
            if (inputs) {
                batching.controls().forEach(control -> names.add(control.name()));
            }
        });
        return names;
    }

    private static List<GraphTensor> without(List<GraphTensor> tensors, Set<String> names) {
        return tensors.stream().filter(tensor -> !names.contains(tensor.name())).toList();
    }

    /** A configured 0 counts as none here; the server knows whether an owner wrote it. */
    private static int maxBatchSize(ModelSettings settings, GraphModel model, int defaultMaxBatchSize) {
        boolean canBatch = model.inputs().stream().allMatch(TensorFlowCompletion::hasBatchDimension)
                && model.outputs().stream().allMatch(TensorFlowCompletion::hasBatchDimension)
                && !model.inputs().isEmpty();
        Completions.checkBatching(settings, canBatch);
        if (!canBatch) {
            return 0;
        }
        return settings.batches() ? settings.maxBatchSize() : defaultMaxBatchSize;
    }

    private static boolean hasBatchDimension(GraphTensor tensor) {
        return tensor.shape()
                .filter(dims -> dims.length > 0 && dims[0] == Shape.VARIABLE)
                .isPresent();
    }

    private static List<TensorSpec> specs(
            List<GraphTensor> tensors, String role, ModelSettings settings, boolean batches) {
        List<TensorSpec> specs = new ArrayList<>();
        for (GraphTensor tensor : tensors) {
            specs.add(spec(tensor, role, settings, batches));
        }
        return specs;
    }

    private static TensorSpec spec(GraphTensor tensor, String role, ModelSettings settings, boolean batches) {
        DataType type = TensorFlowTensors.dataType(tensor, role, settings.name());
        Optional<Shape> shape = TensorFlowTensors.shape(tensor);
        if (shape.isEmpty()) {
            throw ModelErrors.cannotLoad(
                    settings.name(),
                    role + " '" + tensor.name() + "': the model does not say how many dimensions it has (expected: its"
                            + " dims in the configuration)");
        }
        return Completions.tensor(tensor.name(), type, shape.get(), batches);
    }
}
