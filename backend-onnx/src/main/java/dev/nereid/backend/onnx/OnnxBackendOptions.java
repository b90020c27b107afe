package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.OptionValues;
import dev.nereid.backend.onnx.ort.OrtThreads;
import dev.nereid.spi.BackendContext;

/**
 * Options of the backend from {@code --backend-config}. Immutable.
 *
 * @param processors how many processors the server may use
 * @param intraOp threads for one operator, 0 to size them by the processors
 * @param interOp threads for operators that run at the same time, 0 to size them by the processors
 * @param globalThreadPool whether all models share one pool of threads
 * @param defaultMaxBatchSize the largest batch of a model that can batch and has no configured size
 */
record OnnxBackendOptions(int processors, int intraOp, int interOp, boolean globalThreadPool, int defaultMaxBatchSize) {
    private static final int DEFAULT_MAX_BATCH_SIZE = 4;

    static OnnxBackendOptions of(BackendContext context) {
        OptionValues values = new OptionValues(context.settings());
        return new OnnxBackendOptions(
                context.processors(),
                values.number(OnnxParameters.INTRA_OP).orElse(0),
                values.number(OnnxParameters.INTER_OP).orElse(0),
                values.truth("enable-global-threadpool").orElse(false),
                values.number("default-max-batch-size").orElse(DEFAULT_MAX_BATCH_SIZE));
    }

    /** Returns the sizes of the pools that models share. Only if all do, some of them may use the inter-op pool. */
    OrtThreads sharedThreads() {
        int interOpThreads = interOp > 0 ? interOp : processors;
        return new OrtThreads(
                intraOp > 0 ? intraOp : processors,
                globalThreadPool ? interOpThreads : 1,
                OnnxModelOptions.SHARED_POOL_SPINS);
    }
}
