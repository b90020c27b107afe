package dev.nereid.server.lifecycle;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.api.parameter.ModelParameters;
import dev.nereid.plugin.PluginLogger;
import dev.nereid.plugin.boundary.KeptObjects;
import dev.nereid.repository.files.VersionFiles;
import dev.nereid.server.dependency.RequiredModels;
import dev.nereid.server.executor.LogLevelWatch;
import dev.nereid.server.instance.LoadWaits;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.Device;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/**
 * One model version, as its backend sees it. Immutable but for the kept objects, the required models, and the record of
 * its reads.
 */
record VersionContext(
        ModelSettings settings,
        ModelParameters parameters,
        Path modelDirectory,
        Path versionDirectory,
        List<Device> instances,
        PluginLogger logger,
        Optional<ModelClient> client,
        VersionFiles files,
        Executor executor,
        KeptObjects kept,
        RequiredModels required,
        LogLevelWatch logLevels,
        Metrics metrics,
        LoadWaits waits)
        implements ModelContext {
    VersionContext {
        instances = List.copyOf(instances);
    }

    @Override
    public Path privateFiles(Path directory, Collection<String> files) {
        return this.files.copy(directory, files);
    }

    @Override
    public <T> T await(CompletionStage<T> stage) {
        try {
            waits.awaitEnd(stage.toCompletableFuture(), "a wait of its backend");
        } catch (InferenceException e) {
            throw new BackendException(e.code(), e.publicMessage(), e);
        }
        return ModelContext.super.await(stage);
    }

    @Override
    public <T extends AutoCloseable> T keep(T object) {
        kept.keep(requireNonNull(object, "object"));
        return object;
    }

    @Override
    public <T extends AutoCloseable> Optional<T> take(Class<T> type) {
        return kept.take(type);
    }

    @Override
    public void requires(String model) {
        try {
            required.require(model);
        } catch (InferenceException e) {
            throw new BackendException(e.code(), e.publicMessage(), e);
        }
    }

    @Override
    public void log(System.Logger.Level level, String file, int line, String text) {
        logger.log(level, file, line, text);
    }

    @Override
    public CancelHook onLogLevel(Consumer<System.Logger.Level> action) {
        return logLevels.subscribe(logger, executor, action);
    }

    @Override
    public ModelClient models() {
        return client.orElseGet(ModelContext.super::models);
    }
}
