package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.OptionValues;
import dev.nereid.spi.BackendContext;

/**
 * Options of the backend from {@code --backend-config}. Immutable.
 *
 * @param processors how many processors the server may use
 * @param intraOp threads for one operation, of the process
 * @param softPlacement whether operations without a kernel for GPUs run on the CPU
 * @param defaultMaxBatchSize the largest batch of a model that can batch and has no configured size
 */
record TensorFlowBackendOptions(int processors, int intraOp, boolean softPlacement, int defaultMaxBatchSize) {
    private static final int DEFAULT_MAX_BATCH_SIZE = 4;

    static TensorFlowBackendOptions of(BackendContext context) {
        OptionValues values = new OptionValues(context.settings());
        int intraOp = values.number(TensorFlowModelOptions.INTRA_OP).orElse(0);
        if (intraOp < 0) {
            throw context.settings()
                    .invalid(TensorFlowModelOptions.INTRA_OP, "a number of threads, or 0 for all processors");
        }
        return new TensorFlowBackendOptions(
                context.processors(),
                intraOp > 0 ? intraOp : context.processors(),
                values.truth("allow-soft-placement").orElse(true),
                values.number("default-max-batch-size").orElse(DEFAULT_MAX_BATCH_SIZE));
    }
}
