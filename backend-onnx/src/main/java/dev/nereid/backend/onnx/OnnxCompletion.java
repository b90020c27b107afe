package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.Completions;
import dev.nereid.backend.onnx.ort.OrtSession;
import dev.nereid.backend.onnx.ort.OrtTensorInfo;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** Completes a configuration from the metadata of a model. Stateless. */
final class OnnxCompletion {
    private OnnxCompletion() {}

    /**
     * Completes a configuration. Returns batching as far as the model allows it, by default of {@code
     * defaultMaxBatchSize}, and the inputs or outputs that the configuration lacks.
     */
    static ModelCompletion of(ModelContext context, OrtSession session, int defaultMaxBatchSize) {
        ModelSettings settings = context.settings();
        OnnxTensors.requireTensors(session.requiredInputs());
        OnnxTensors.requireTensors(session.outputs());
        int maxBatchSize = maxBatchSize(context, session, Math.max(0, defaultMaxBatchSize));
        boolean batches = maxBatchSize > 0;
        ModelCompletion completion = ModelCompletion.EMPTY.withProposedMaxBatchSize(maxBatchSize);
        if (Completions.lacksInputs(settings)) {
            completion = completion.withInputs(specs(session.requiredInputs(), "input", batches));
        }
        if (settings.outputs().isEmpty()) {
            completion = completion.withOutputs(specs(session.outputs(), "output", batches));
        }
        return maxBatchSize > 1 ? completion.withDynamicBatching() : completion;
    }

    /**
     * Returns the configured batch size, or the default where the configuration has none and the first dimension of all
     * tensors is the same. A configured 0 counts as none here; the server knows whether an owner wrote it.
     */
    private static int maxBatchSize(ModelContext context, OrtSession session, int defaultMaxBatchSize) {
        ModelSettings settings = context.settings();
        List<OrtTensorInfo> tensors = new ArrayList<>(session.requiredInputs());
        tensors.addAll(session.outputs());
        boolean canBatch = tensors.stream().allMatch(OnnxCompletion::hasBatchDimension);
        Completions.checkBatching(settings, canBatch);
        if (!canBatch) {
            return 0;
        }
        if (settings.batches()) {
            return settings.maxBatchSize();
        }
        Set<String> names = firstDimensions(tensors);
        if (names.size() > 1) {
            context.logger()
                    .log(
                            System.Logger.Level.INFO,
                            "model '" + settings.name() + "' does not batch: the first dimensions of its inputs and"
                                    + " outputs are " + names + " (expected: one name for all, or a max_batch_size in"
                                    + " the model configuration)");
            return 0;
        }
        return defaultMaxBatchSize;
    }

    private static boolean hasBatchDimension(OrtTensorInfo info) {
        return !info.dims().isEmpty() && info.dims().getFirst() == Shape.VARIABLE;
    }

    /** Returns the names of the first dimensions, as far as they have names. */
    private static Set<String> firstDimensions(List<OrtTensorInfo> tensors) {
        Set<String> names = new TreeSet<>();
        for (OrtTensorInfo tensor : tensors) {
            String name = tensor.symbols().getFirst();
            if (!name.isEmpty()) {
                names.add(name);
            }
        }
        return names;
    }

    private static List<TensorSpec> specs(List<OrtTensorInfo> infos, String role, boolean batches) {
        return infos.stream()
                .map(info -> Completions.tensor(
                        info.name(), OnnxTensors.dataType(info, role), OnnxTensors.shape(info), batches))
                .toList();
    }
}
