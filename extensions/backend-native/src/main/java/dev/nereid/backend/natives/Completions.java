package dev.nereid.backend.natives;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;

/** Completes configurations from the tensors of a model. Stateless. */
public final class Completions {
    private Completions() {}

    /** Returns whether inputs or outputs are missing in a configuration; otherwise logs that nothing is completed. */
    public static boolean isNeeded(ModelContext context) {
        ModelSettings settings = context.settings();
        if (lacksInputs(settings) || settings.outputs().isEmpty()) {
            return true;
        }
        context.logger()
                .log(
                        System.Logger.Level.INFO,
                        "skipping model configuration auto-complete for '" + settings.name()
                                + "': inputs and outputs already specified");
        return false;
    }

    public static boolean lacksInputs(ModelSettings settings) {
        return settings.inputs().isEmpty() && settings.batchInputs().isEmpty();
    }

    /** Refuses a configured batch size unless all tensors of the model have a batch dimension. */
    public static void checkBatching(ModelSettings settings, boolean canBatch) {
        if (!canBatch && settings.batches()) {
            throw ModelErrors.invalid("autofill failed for model '" + settings.name()
                    + "': model does not support batching while non-zero max_batch_size is specified");
        }
    }

    /**
     * Describes a tensor for the configuration. A tensor without dimensions beside the batch is configured as [1], and
     * in a batch reshaped to the model's shape.
     *
     * @param batches whether the first dimension of the model's shape is the batch
     */
    public static TensorSpec tensor(String name, DataType type, Shape shape, boolean batches) {
        Shape dims = batches ? shape.dropFirst() : shape;
        if (dims.rank() > 0) {
            return TensorSpec.of(name, type, dims);
        }
        TensorSpec single = TensorSpec.of(name, type, Shape.of(1));
        return batches ? single.withReshape(Shape.SCALAR) : single;
    }
}
