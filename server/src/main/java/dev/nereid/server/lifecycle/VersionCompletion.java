package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.parameter.ModelParameters;
import dev.nereid.plugin.BackendLease;
import dev.nereid.plugin.PluginLogger;
import dev.nereid.plugin.boundary.KeptObjects;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.config.BatchingStrategyFactory;
import dev.nereid.repository.config.ConfigCompletion;
import dev.nereid.repository.config.ConfigNormalization;
import dev.nereid.repository.config.ConfigValidation;
import dev.nereid.repository.files.VersionFiles;
import dev.nereid.scheduler.Supervision;
import dev.nereid.server.dependency.RequiredModels;
import dev.nereid.server.executor.ModelExecutor;
import dev.nereid.server.instance.LoadWaits;
import dev.nereid.server.instance.Rollback;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
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
     * @param lease a lease on the model's backend, owned by the caller
     * @param files the private copies of the version's files; closed here, but after the last task of the backend, as
     *     another lease is
     * @param supervision limits the time that tasks of the backend may take after the completion
     * @param waits the waits of the backend for slow work
     * @return the configuration with which the version would be loaded
     * @throws BackendException if the backend cannot complete it
     * @throws InferenceException if the completed configuration is wrong
     */
    public static ModelConfig complete(
            ModelLoadOptions options,
            PreparedModel prepared,
            long version,
            BackendLease lease,
            VersionFiles files,
            Supervision supervision,
            LoadWaits waits) {
        try (Rollback rollback = new Rollback()) {
            rollback.add(files::close);
            BackendLease shared = lease.share();
            rollback.add(shared::close);
            LoadScope scope = LoadScope.of(prepared, version, lease, files, supervision, waits);
            rollback.commit(); // the executor closes both
            try {
                return complete(options, scope);
            } finally {
                scope.required().end();
                scope.kept().close(); // first, since tasks may end with it
                scope.executor().close(() -> release(files, shared));
            }
        }
    }

    private static void release(VersionFiles files, BackendLease lease) {
        try (lease) {
            files.close();
        }
    }

    /**
     * The objects that the completion of a version shares with the load that follows.
     *
     * @param files the private copies of the version's files
     * @param executor runs tasks of the plugin
     * @param kept the objects that the plugin keeps until the end of the load
     * @param parameters the parameters, which record their reads
     * @param waits the waits of the backend for slow work
     */
    record LoadScope(
            PreparedModel prepared,
            long version,
            BackendLease lease,
            VersionFiles files,
            ModelExecutor executor,
            KeptObjects kept,
            RequiredModels required,
            ModelParameters parameters,
            LoadWaits waits) {
        static LoadScope of(
                PreparedModel prepared,
                long version,
                BackendLease lease,
                VersionFiles files,
                Supervision supervision,
                LoadWaits waits) {
            ModelExecutor executor = new ModelExecutor(
                    new ModelRef(prepared.config().getName(), version),
                    lease.threads().plugin(),
                    supervision);
            return new LoadScope(
                    prepared,
                    version,
                    lease,
                    files,
                    executor,
                    lease.newKeptObjects(),
                    new RequiredModels(prepared.requirer()),
                    ModelSettingsReader.parameters(prepared.config()),
                    waits);
        }
    }

    /** Completes the configuration of a version that may be loaded in the same scope. */
    static ModelConfig complete(ModelLoadOptions options, LoadScope scope) {
        PreparedModel prepared = scope.prepared();
        Backend backend = scope.lease().backend();
        ModelConfig config = withRuntime(prepared.config(), scope.lease());
        if (options.autoComplete()) {
            ConfigValidation.checkGivenTensors(config);
            ModelSettings soFar = ModelSettingsReader.settingsSoFar(config, scope.version());
            Optional<ModelCompletion> found =
                    backend.complete(context(options, scope, config, soFar, List.of(), Optional.empty()));
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
            BatchingStrategyFactory.refuseNative(config);
            ConfigValidation.checkTensors(config);
        }
        config = ConfigNormalization.instanceGroups(
                config, backend.traits(), options.instances().gpus());
        ConfigValidation.checkInstanceGroups(config, options.instances().gpus());
        return config;
    }

    /** Names the program of a backend that a plugin runs, as the reference server does. */
    private static ModelConfig withRuntime(ModelConfig config, BackendLease lease) {
        return config.getRuntime().isEmpty() && !lease.runtime().isEmpty()
                ? config.toBuilder().setRuntime(lease.runtime()).build()
                : config;
    }

    /** Logs the effects of batching that the completion has enabled and the owner did not configure. */
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
            ModelLoadOptions options,
            LoadScope scope,
            ModelConfig config,
            ModelSettings settings,
            List<Device> devices,
            Optional<ModelClient> client) {
        PluginLogger logger = new PluginLogger(config.getBackend(), config.getName())
                .withWarnings(warning -> options.warnings().accept(config.getName(), warning));
        ModelDirectory directory = scope.prepared().directory();
        return new VersionContext(
                settings,
                scope.parameters(),
                directory.path(),
                directory.versionDirectory(scope.version()),
                devices,
                logger,
                client,
                scope.files(),
                scope.lease().callbacks().isolate(scope.executor()),
                scope.kept(),
                scope.required(),
                scope.executor().logLevels(),
                Metrics.unpublished(logger),
                scope.waits());
    }
}
