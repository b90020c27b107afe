package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.repository.ModelCopy;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.ModelLocation;
import dev.nereid.repository.ModelRepository;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.ModelEntry;
import dev.nereid.server.lifecycle.ModelPreparation;
import dev.nereid.server.lifecycle.PreparedModel;
import dev.nereid.server.lifecycle.ReloadRequiredException;
import dev.nereid.server.lifecycle.ServedModel;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.server.lifecycle.VersionUpdater;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Updates the instances of serving models for embedding programs, and nothing else of them. Immutable; blocks. */
final class InstanceUpdates {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceUpdates.class);

    private final ModelRepository repository;
    private final ModelPreparation preparation;
    private final VersionUpdater updater;
    private final ServedModels models;
    private final CatalogUpdater catalog;

    InstanceUpdates(
            ModelRepository repository,
            ModelPreparation preparation,
            VersionUpdater updater,
            ServedModels models,
            CatalogUpdater catalog) {
        this.repository = repository;
        this.preparation = preparation;
        this.updater = updater;
        this.models = models;
        this.catalog = catalog;
    }

    /**
     * Updates a model as {@link ModelLifecycle#updateInstances} does. Called by one task of the model at a time.
     *
     * @return waits for the close of instances that were removed, a minute at most
     */
    List<Runnable> update(String name) throws InterruptedException {
        NavigableMap<Long, Generation> served = served(name);
        ModelLocation location = repository.find(name).stream()
                .findFirst()
                .orElseThrow(() -> ModelEntry.notFound(ModelRef.latest(ModelKey.name(name))));
        try (ModelCopy copy = location.fetch()) {
            return update(name, served, prepare(copy.directory()));
        }
    }

    private List<Runnable> update(String name, NavigableMap<Long, Generation> served, PreparedModel prepared)
            throws InterruptedException {
        if (!prepared.versions().equals(served.navigableKeySet())) {
            throw reload(
                    name,
                    "its versions " + served.navigableKeySet() + " are served, and " + prepared.versions()
                            + " would be");
        }
        List<Runnable> waits = new ArrayList<>();
        for (Generation generation : served.values()) {
            ServedModel before = generation.model();
            try {
                generation.update(updater.updateInPlace(prepared, before));
            } catch (ReloadRequiredException e) {
                throw reload(name, e.reason());
            } catch (BackendException e) {
                throw new InferenceException(e.code(), String.valueOf(e.getMessage()));
            }
            catalog.refresh(name);
            ServedModel after = generation.model();
            waits.add(() -> updater.awaitClosed(before, after));
            LOG.atInfo()
                    .addKeyValue("model", ModelKey.name(name))
                    .addKeyValue("version", generation.model().version())
                    .addKeyValue("instances", generation.model().instances().size())
                    .log(
                            "instances updated (model '{}', version {})",
                            ModelKey.name(name),
                            generation.model().version());
        }
        return waits;
    }

    private PreparedModel prepare(ModelDirectory directory) {
        try {
            return preparation.prepareUpdate(directory);
        } catch (ReloadRequiredException e) {
            throw reload(directory.name(), e.reason());
        }
    }

    /** Finds the versions of a model, all of which have to serve. */
    private NavigableMap<Long, Generation> served(String name) {
        ModelEntry entry =
                models.find(name).orElseThrow(() -> ModelEntry.notFound(ModelRef.latest(ModelKey.name(name))));
        if (!entry.isWhole()) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    "model '" + ModelKey.name(name)
                            + "' cannot be updated: it is not at ready state (expected: every version serves)");
        }
        return entry.ready();
    }

    private static InferenceException reload(String model, String reason) {
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                "model '" + ModelKey.name(model) + "' cannot be updated while it serves: " + reason
                        + " (expected: a change of its instances alone; load the model again)");
    }
}
