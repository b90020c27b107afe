package dev.nereid.repository.config;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import inference.ModelConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Creates a model's own batching strategy and refuses native ones. Static functions only. */
public final class BatchingStrategyFactory {
    private static final Logger LOG = LoggerFactory.getLogger(BatchingStrategyFactory.class);
    /** The parameter that names a batching strategy in native code. */
    static final String NATIVE_PARAMETER = "TRITON_BATCH_STRATEGY_PATH";

    private static final String NATIVE_FILE = "batchstrategy.so";

    private BatchingStrategyFactory() {}

    /**
     * Creates the batching strategy of a model.
     *
     * @return the strategy, owned by the caller; empty if there is none, or if the configuration has no dynamic
     *     batching: then the strategy is closed again, and the log has a warning
     */
    public static Optional<BatchingStrategy> of(Model model, ModelConfig config) {
        Optional<BatchingStrategy> strategy = model.batching();
        if (strategy.isEmpty() || config.hasDynamicBatching()) {
            return strategy;
        }
        LOG.atWarn()
                .addKeyValue("model", config.getName())
                .log(
                        "batching strategy of model ignored: its configuration has no dynamic_batching (model '{}')",
                        config.getName());
        strategy.get().close();
        return Optional.empty();
    }

    /** Refuses a configuration with a strategy in native code. */
    public static void refuseNative(ModelConfig config) {
        if (config.containsParameters(NATIVE_PARAMETER)) {
            String path = config.getParametersOrThrow(NATIVE_PARAMETER).getStringValue();
            throw unsupported(config, "parameter " + NATIVE_PARAMETER + ": '" + path + "'");
        }
    }

    /** Refuses a model that brings a strategy in native code, where it would be used. */
    public static void refuseNative(ModelConfig config, Path model, Path version) {
        for (Path directory : List.of(version, model)) {
            Path file = directory.resolve(NATIVE_FILE);
            if (config.hasDynamicBatching() && Files.exists(file)) {
                throw unsupported(config, "'" + model.relativize(file) + "'");
            }
        }
    }

    private static InferenceException unsupported(ModelConfig config, String where) {
        return new InferenceException(
                ErrorCode.UNSUPPORTED,
                "batching strategies in native code are not supported, model '" + config.getName()
                        + "' configures one by " + where + " (expected: one that its backend makes in Model.batching)");
    }
}
