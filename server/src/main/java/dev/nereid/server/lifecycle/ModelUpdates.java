package dev.nereid.server.lifecycle;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.server.repository.ModelDirectory;
import dev.nereid.server.repository.ModelRepository;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Updates the instances of serving models, one model at a time, on one thread. Safe for use by any thread; closed
 * once, before the models are.
 */
final class ModelUpdates {
    private static final Logger LOG = LoggerFactory.getLogger(ModelUpdates.class);

    private final ModelRepository repository;
    private final ModelPreparation preparation;
    private final VersionUpdater updater;
    private final ServedModels models;
    private final FatalErrorHandler fatalErrors;
    private final ExecutorService control = Executors.newSingleThreadExecutor(
            Thread.ofPlatform().name("control").daemon(true).factory());

    ModelUpdates(
            ModelRepository repository,
            ModelPreparation preparation,
            VersionUpdater updater,
            ServedModels models,
            FatalErrorHandler fatalErrors) {
        this.fatalErrors = fatalErrors;
        this.repository = repository;
        this.preparation = preparation;
        this.updater = updater;
        this.models = models;
    }

    /** Updates a model as {@link ModelLifecycle#updateInstances} does. */
    void updateInstances(String model) throws InterruptedException {
        Future<?> update;
        try {
            update = control.submit(() -> {
                update(model);
                return null;
            });
        } catch (RejectedExecutionException e) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
        }
        try {
            update.get();
        } catch (ExecutionException e) {
            throw failure(model, e.getCause());
        }
    }

    /** Takes no more updates. */
    void end() {
        control.shutdown();
    }

    /** Waits for the updates that were taken before {@link #end}; returns whether they ended in time. */
    boolean awaitEnd(long nanos) throws InterruptedException {
        return control.awaitTermination(nanos, TimeUnit.NANOSECONDS);
    }

    private void update(String name) throws BackendException, InterruptedException {
        NavigableMap<Long, ServedModel> served = served(name);
        ModelDirectory directory = repository.scan().models().stream()
                .filter(candidate -> candidate.name().equals(name))
                .findFirst()
                .orElseThrow(() -> ModelEntry.notFound(ModelRef.latest(name)));
        PreparedModel prepared = preparation.prepare(directory);
        if (!prepared.versions().equals(served.navigableKeySet())) {
            throw VersionUpdater.reload(
                    name,
                    "its versions " + served.navigableKeySet() + " are served, and " + prepared.versions()
                            + " would be");
        }
        for (ServedModel version : served.values()) {
            ServedModel updated = updater.update(prepared, version);
            models.change(name, entry -> entry.with(version.version(), new VersionState.Ready(updated)));
            LOG.atInfo()
                    .addKeyValue("model", name)
                    .addKeyValue("version", version.version())
                    .addKeyValue("instances", updated.instances().size())
                    .log("instances updated");
        }
    }

    /** Finds the versions of a model, all of which have to serve. */
    private NavigableMap<Long, ServedModel> served(String name) {
        NavigableMap<Long, ServedModel> served = new TreeMap<>();
        NavigableMap<Long, VersionState> versions = models.versions(name);
        versions.forEach((version, state) -> {
            if (state instanceof VersionState.Ready(ServedModel model)) {
                served.put(version, model);
            }
        });
        if (served.isEmpty() || served.size() < versions.size()) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    "model '" + name
                            + "' cannot be updated: it is not at ready state (expected: every version serves)");
        }
        return served;
    }

    private InferenceException failure(String model, @Nullable Throwable cause) {
        fatalErrors.check(cause);
        if (cause instanceof InferenceException inference) {
            return new InferenceException(inference.code(), inference.publicMessage());
        }
        if (cause instanceof BackendException backend) {
            return new InferenceException(backend.code(), String.valueOf(backend.getMessage()));
        }
        LOG.atError().addKeyValue("model", model).setCause(cause).log("update failed unexpectedly");
        return new InferenceException(ErrorCode.INTERNAL, "internal error: " + cause);
    }
}
