package dev.nereid.backend.onnx;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.List;

/** Completes a configuration from what a model says about itself. Stateless. */
final class OnnxCompletion {
    private OnnxCompletion() {}

    /** Tells whether inputs or outputs are missing in a configuration; otherwise nothing at all is completed. */
    static boolean isNeeded(ModelSettings settings) {
        return settings.inputs().isEmpty() || settings.outputs().isEmpty();
    }

    /**
     * Returns batching as far as the model allows it, and whichever of inputs and outputs the configuration lacks.
     *
     * @param defaultMaxBatchSize the largest batch where the configuration has none
     */
    static ModelCompletion of(ModelSettings settings, OrtSession session, int defaultMaxBatchSize)
            throws BackendException {
        // First the types: a model of types that cannot be served is refused for them, not for its batches.
        List<TensorSpec> plainInputs = specs(session.requiredInputs(), false);
        List<TensorSpec> plainOutputs = specs(session.outputs(), false);
        int maxBatchSize = maxBatchSize(settings, session, defaultMaxBatchSize);
        boolean batches = maxBatchSize > 0;
        ModelCompletion completion = ModelCompletion.EMPTY.withMaxBatchSize(maxBatchSize);
        if (settings.inputs().isEmpty()) {
            completion = completion.withInputs(batches ? specs(session.requiredInputs(), true) : plainInputs);
        }
        if (settings.outputs().isEmpty()) {
            completion = completion.withOutputs(batches ? specs(session.outputs(), true) : plainOutputs);
        }
        return maxBatchSize > 1 ? completion.withDynamicBatching() : completion;
    }

    /** A configured 0 counts as none, as in the reference server. */
    private static int maxBatchSize(ModelSettings settings, OrtSession session, int defaultMaxBatchSize)
            throws BackendException {
        boolean canBatch = session.requiredInputs().stream().allMatch(OnnxCompletion::hasBatchDimension)
                && session.outputs().stream().allMatch(OnnxCompletion::hasBatchDimension);
        if (!canBatch && settings.batches()) {
            throw OnnxErrors.invalid("autofill failed for model '" + settings.name()
                    + "': model does not support batching while non-zero max_batch_size is specified");
        }
        if (!canBatch) {
            return 0;
        }
        return settings.batches() ? settings.maxBatchSize() : defaultMaxBatchSize;
    }

    private static boolean hasBatchDimension(OrtTensorInfo info) {
        return !info.dims().isEmpty() && info.dims().getFirst() == Shape.VARIABLE;
    }

    private static List<TensorSpec> specs(List<OrtTensorInfo> infos, boolean batches) throws BackendException {
        List<TensorSpec> specs = new ArrayList<>();
        for (OrtTensorInfo info : infos) {
            specs.add(spec(info, batches));
        }
        return specs;
    }

    /** A tensor without dimensions of its own is configured as [1], and in a batch reshaped to what the model wants. */
    private static TensorSpec spec(OrtTensorInfo info, boolean batches) throws BackendException {
        Shape shape = OnnxTensors.shape(info);
        Shape dims = batches ? shape.dropFirst() : shape;
        if (dims.rank() > 0) {
            return TensorSpec.of(info.name(), OnnxTensors.dataType(info), dims);
        }
        TensorSpec single = TensorSpec.of(info.name(), OnnxTensors.dataType(info), Shape.of(1));
        return batches ? single.withReshape(Shape.SCALAR) : single;
    }
}
