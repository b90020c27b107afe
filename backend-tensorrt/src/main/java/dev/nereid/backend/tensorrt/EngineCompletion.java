package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.List;

/** Completes a configuration from an engine. Static functions only. */
final class EngineCompletion {
    private EngineCompletion() {}

    /** Returns whether inputs, outputs or batching are missing in a configuration. */
    static boolean isNeeded(ModelSettings settings) {
        return (settings.inputs().isEmpty() && settings.batchInputs().isEmpty())
                || settings.outputs().isEmpty()
                || !settings.batches();
    }

    /**
     * Completes a configuration. The engine batches if the first dimension of each of its tensors is variable, up to the
     * largest batch that one of the configured profiles allows for all inputs.
     */
    static ModelCompletion of(ModelSettings settings, Engine engine) {
        List<EngineTensor> tensors = engine.tensors();
        boolean canBatch = tensors.stream().allMatch(EngineCompletion::hasBatchDimension);
        if (!canBatch && settings.batches()) {
            throw TensorRtErrors.invalid("autofill failed for model '" + settings.name()
                    + "': model does not support batching while non-zero max_batch_size is specified");
        }
        boolean withTensors =
                settings.inputs().isEmpty() && settings.batchInputs().isEmpty();
        // Configured tensors say whether there is a batch dimension; without any, the engine does.
        int limit = canBatch ? largestBatch(settings, engine) : 0;
        int proposed = withTensors || lackBatchDimension(settings, tensors) ? limit : 0;
        int maxBatchSize = settings.batches() ? settings.maxBatchSize() : proposed;
        ModelCompletion completion =
                ModelCompletion.EMPTY.withProposedMaxBatchSize(proposed).withMaxBatchSizeLimit(limit);
        if (withTensors) {
            completion = completion.withInputs(specs(tensors, true, maxBatchSize > 0));
        }
        if (settings.outputs().isEmpty()) {
            completion = completion.withOutputs(specs(tensors, false, maxBatchSize > 0));
        }
        return maxBatchSize > 1 ? completion.withDynamicBatching() : completion;
    }

    private static boolean lackBatchDimension(ModelSettings settings, List<EngineTensor> tensors) {
        return tensors.stream()
                .filter(tensor -> tensor.isInput() && !tensor.isShapeTensor())
                .allMatch(tensor -> settings.input(tensor.name()).stream()
                        .allMatch(spec ->
                                spec.backendDims().rank() < tensor.shape().rank()));
    }

    private static boolean hasBatchDimension(EngineTensor tensor) {
        return tensor.isShapeTensor()
                || (tensor.shape().rank() > 0 && tensor.shape().dim(0) == Shape.VARIABLE);
    }

    private static int largestBatch(ModelSettings settings, Engine engine) {
        return ProfileChoice.read(settings.values("instance_group.profile"), engine.profiles()).stream()
                .mapToInt(profile -> largestBatch(engine.tensors(), profile))
                .max()
                .orElse(0);
    }

    private static int largestBatch(List<EngineTensor> tensors, int profile) {
        return (int) tensors.stream()
                .filter(tensor -> tensor.isInput() && !tensor.isShapeTensor())
                .mapToLong(input -> input.ranges().get(profile).max().dim(0))
                .reduce(Integer.MAX_VALUE, Math::min);
    }

    private static List<TensorSpec> specs(List<EngineTensor> tensors, boolean inputs, boolean batches) {
        List<TensorSpec> specs = new ArrayList<>();
        for (EngineTensor tensor : tensors) {
            if (tensor.isInput() == inputs) {
                specs.add(spec(tensor, batches));
            }
        }
        return specs;
    }

    private static TensorSpec spec(EngineTensor tensor, boolean batches) {
        boolean batched = batches && !tensor.isShapeTensor();
        Shape dims = batched ? tensor.shape().dropFirst() : tensor.shape();
        TensorSpec spec = TensorSpec.of(tensor.name(), EngineTypes.of(tensor), dims.rank() > 0 ? dims : Shape.of(1));
        if (dims.rank() == 0 && batched) {
            spec = spec.withReshape(Shape.SCALAR);
        }
        if (!tensor.format().isLinear()) {
            spec = spec.with(TensorSpec.Trait.NON_LINEAR_FORMAT);
        }
        return tensor.isShapeTensor() ? spec.with(TensorSpec.Trait.SHAPE_TENSOR) : spec;
    }
}
