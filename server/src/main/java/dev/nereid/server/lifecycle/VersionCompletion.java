package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.api.parameter.ModelParameters;
import dev.nereid.server.config.ConfigCompletion;
import dev.nereid.server.config.ConfigNormalization;
import dev.nereid.server.config.ConfigValidation;
import dev.nereid.server.config.ModelSettingsReader;
import dev.nereid.server.config.UnsupportedFeatures;
import dev.nereid.server.files.VersionFiles;
import dev.nereid.server.plugin.PluginLogger;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelCompletion;
import inference.ModelConfig;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Completes the configuration of a model version by its backend. Static functions only; they block. */
public final class VersionCompletion {
    private static final Logger LOG = LoggerFactory.getLogger(VersionCompletion.class);

    private VersionCompletion() {}

    /**
     * Completes the configuration of a version from its files, and checks it.
     *
     * @param options how models are loaded
     * @param prepared the version's model
     * @param version the version
     * @param backend the model's backend
     * @param files the private copies of the version's files
     * @return the configuration with which the version is loaded
     * @throws BackendException if the backend cannot complete it
     * @throws InferenceException if the completed configuration is wrong
     */
    public static ModelConfig complete(
            ModelLoadOptions options, PreparedModel prepared, long version, Backend backend, VersionFiles files) {
        return complete(options, prepared, version, backend, files, ModelSettingsReader.parameters(prepared.config()));
    }

    /** Completes the configuration of a version, and records the parameters that its backend reads. */
    static ModelConfig complete(
            ModelLoadOptions options,
            PreparedModel prepared,
            long version,
            Backend backend,
            VersionFiles files,
            ModelParameters parameters) {
        ModelConfig config = prepared.config();
        if (options.autoComplete()) {
            ConfigValidation.checkGivenTensors(config);
            Optional<ModelCompletion> found = backend.complete(
                    context(prepared, version, config, parameters, List.of(), Optional.empty(), files));
            if (found.isEmpty() && !prepared.configured()) {
                throw new BackendException(
                        ErrorCode.NOT_FOUND,
                        "model configuration is not provided for model '" + config.getName() + "'");
            }
            ModelCompletion completion = found.orElse(ModelCompletion.EMPTY);
            ConfigCompletion.checkBatchSize(config, completion);
            ModelConfig merged = ConfigCompletion.merge(
                    config,
                    prepared.hasMaxBatchSize() ? ConfigCompletion.withinBatchSize(config, completion) : completion);
            reportBatching(config, merged);
            config = ConfigNormalization.normalize(merged);
            ConfigValidation.check(config, prepared.directory().name());
            UnsupportedFeatures.check(config);
            ConfigValidation.checkTensors(config);
        }
        config = ConfigNormalization.instanceGroups(
                config, backend.traits(), options.instances().gpus());
        ConfigValidation.checkInstanceGroups(config, options.instances().gpus());
        return config;
    }

    /** Says what it means that a configuration batches though its owner did not write that. */
    private static void reportBatching(ModelConfig before, ModelConfig completed) {
        int maxBatchSize = completed.getMaxBatchSize();
        boolean shares = maxBatchSize > 1 && completed.hasDynamicBatching();
        if (before.getMaxBatchSize() == 0 && maxBatchSize > 0) {
            // The reference server's text, since scripts search for it.
            LOG.atWarn()
                    .log(
                            "autofilled max_batch_size to {} for model '{}' since batching is supporrted but no"
                                    + " max_batch_size is specified in model configuration. Must specify max_batch_size"
                                    + " to utilize autofill with a larger max batch size{}",
                            maxBatchSize,
                            completed.getName(),
                            shares
                                    ? ". Requests of several clients share an execution; write max_batch_size: 0 for a"
                                            + " model of which one row of a batch changes the others"
                                    : "");
        } else if (shares && !before.hasDynamicBatching()) {
            LOG.atInfo().log(
                    "autofilled dynamic_batching for model '{}': requests of several clients share an execution,"
                            + " up to its max_batch_size of {}; write max_batch_size: 1 for a model of which one"
                            + " row of a batch changes the others",
                    completed.getName(),
                    maxBatchSize);
        }
    }

    /** Creates the view of a version that its backend gets. */
    static VersionContext context(
            PreparedModel prepared,
            long version,
            ModelConfig config,
            ModelParameters parameters,
            List<Device> devices,
            Optional<ModelClient> client,
            VersionFiles files) {
        return new VersionContext(
                ModelSettingsReader.settings(config, version),
                parameters,
                prepared.directory().path(),
                prepared.directory().versionDirectory(version),
                devices,
                new PluginLogger(config.getBackend(), config.getName()),
                client,
                files,
                Metrics.unpublished());
    }
}
