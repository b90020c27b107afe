package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.plugin.BackendRegistry;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.VersionPolicy;
import dev.nereid.server.dependency.ModelRequirer;
import dev.nereid.server.ensemble.DependentEnsembles;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.ModelPreparation;
import dev.nereid.server.lifecycle.PreparedModel;
import dev.nereid.server.lifecycle.ReloadRequiredException;
import dev.nereid.server.lifecycle.ServedModel;
import dev.nereid.server.lifecycle.VersionState;
import dev.nereid.server.lifecycle.VersionUpdater;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads a model from its files. It prepares the model, decides about each version, loads versions where necessary, and
 * makes all serve in one step. Blocks; one load of a model at a time.
 *
 * <p>The versions of a model are loaded together or not at all: if one of them fails, the new ones are closed again,
 * and the earlier ones continue to serve.
 */
final class ModelLoader {
    private static final Logger LOG = LoggerFactory.getLogger(ModelLoader.class);

    private final BackendRegistry plugins;
    private final ModelPreparation preparation;
    private final LoadAttempts loads;
    private final VersionUpdater updater;
    private final CatalogUpdater catalog;
    private final LiveGenerations live;
    private final LoadFailures failures;
    private final DependentEnsembles dependents;

    /** The last loads of the models that serve, by name. */
    private final ConcurrentHashMap<String, LastLoad> loaded = new ConcurrentHashMap<>();

    /**
     * Identities of the last forced loads of models, by name. They outlive unloads and evictions, so that responses which
     * were cached before are never used again.
     */
    private final ConcurrentHashMap<String, String> forcedLoads = new ConcurrentHashMap<>();

    ModelLoader(
            BackendRegistry plugins,
            ModelPreparation preparation,
            LoadAttempts loads,
            VersionUpdater updater,
            CatalogUpdater catalog,
            LiveGenerations live,
            LoadFailures failures,
            DependentEnsembles dependents) {
        this.plugins = plugins;
        this.preparation = preparation;
        this.loads = loads;
        this.updater = updater;
        this.catalog = catalog;
        this.live = live;
        this.failures = failures;
        this.dependents = dependents;
    }

    /** Returns whether a model serves as a whole, and was loaded from the same files. */
    boolean isLoadedFrom(ModelSource source) {
        String model = source.key();
        LastLoad before = loaded.get(model);
        return before != null && before.isFrom(source) && !isOutdated(before) && catalog.isWhole(model);
    }

    /** Returns whether another plugin has taken the place of the one by which a model was loaded. */
    private boolean isOutdated(LastLoad before) {
        return !before.plugin().equals(plugins.digest(before.config().getBackend()));
    }

    /** Returns whether a model that serves uses the models that it needs now, given by their keys. */
    boolean isLinkedTo(String model, Set<String> needed) {
        return dependents.areLinkedTo(catalog.serving(model), needed);
    }

    /** Finds plugins that were added or changed. */
    void refreshPlugins() {
        plugins.refresh();
    }

    /** Counts the plugins that were added or changed, and finds the loaded models that have other plugins now. */
    RepositoryPoller.PluginState readPlugins() {
        plugins.refresh();
        long changes = plugins.changes();
        Map<String, String> outdated = new TreeMap<>();
        loaded.forEach((model, before) -> {
            if (isOutdated(before)) {
                outdated.put(model, plugins.digest(before.config().getBackend()));
            }
        });
        return new RepositoryPoller.PluginState(changes, outdated);
    }

    /**
     * Forgets the last load of a model, so that the next load keeps no version.
     *
     * @param isGone whether the model is not in the repository any more
     */
    void forget(String model, boolean isGone) {
        loaded.remove(model);
        if (isGone) {
            forcedLoads.remove(model);
        }
    }

    /**
     * Loads a model.
     *
     * @param source the configuration and files of the model
     * @param isWhole whether all versions are loaded, also versions with unchanged files
     * @param isForced whether responses that were cached before are not used again
     * @return waits for the close of instances that were removed, a minute at most
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if it cannot be loaded; the catalog has the reason
     */
    List<Runnable> load(ModelSource source, boolean isWhole, boolean isForced, ModelRequirer requirer)
            throws InterruptedException {
        String model = source.key();
        String forcedLoad =
                isForced ? UUID.randomUUID().toString() : forcedLoads.getOrDefault(model, PreparedModel.NOT_FORCED);
        PreparedModel prepared = prepare(source).withForcedLoad(forcedLoad).with(requirer);
        LoadAgents agents = new LoadAgents(prepared.agents());
        String plugin = plugins.digest(prepared.config().getBackend()); // at the latest that by which it is loaded
        List<Runnable> waits;
        try {
            waits = load(
                    prepared,
                    source,
                    agents,
                    plugin,
                    isWhole || !prepared.agents().isEmpty());
        } finally {
            agents.release();
        }
        loaded.put(model, new LastLoad(prepared.config(), prepared.hasMaxBatchSize(), source, plugin));
        if (isForced) {
            forcedLoads.put(model, forcedLoad);
        }
        return waits;
    }

    /** Loads the versions that need it. Agents take part in loads alone: a model which has any is loaded again as a whole. */
    private List<Runnable> load(
            PreparedModel prepared, ModelSource source, LoadAgents agents, String plugin, boolean isWhole)
            throws InterruptedException {
        String model = source.key();
        Supplier<Generation.Hooks> hooks = () -> agents.use(source.use());
        VersionChanges changes =
                VersionChanges.of(prepared, source, isWhole ? null : loaded.get(model), catalog.serving(model), plugin);
        catalog.loading(model, changes.loaded());
        NavigableMap<Long, VersionState> states = new TreeMap<>();
        for (long version : changes.loaded()) {
            states.put(version, loads.load(prepared, version, source.fileBytes(version), hooks));
        }
        List<Runnable> waits = new ArrayList<>();
        if (!isAnyFailed(states)) {
            for (Map.Entry<Long, Generation> served : changes.updated().entrySet()) {
                states.put(served.getKey(), update(prepared, source, served.getValue(), hooks, waits));
            }
        }
        if (isAnyFailed(states)) {
            throw fail(model, states, changes.updated());
        }
        NavigableMap<Long, Generation> serving = new TreeMap<>(changes.kept());
        states.forEach((version, state) -> {
            if (state instanceof VersionState.Ready(Generation generation)) {
                serving.put(version, generation);
            }
        });
        try {
            dependents.check(model, serving);
        } catch (InferenceException e) {
            throw refuse(model, states, changes.updated(), e);
        }
        agents.loadComplete();
        catalog.serve(model, serving, source.files().versions().keySet(), source.isOverridden());
        return waits;
    }

    private PreparedModel prepare(ModelSource source) {
        String model = source.key();
        InferenceException failure;
        try {
            return preparation.prepare(source.directory(), source.config());
        } catch (RuntimeException | VirtualMachineError e) {
            failure = failures.of(source.directory(), source.written(), e);
        }
        LOG.atError()
                .addKeyValue("model", ModelKey.name(model))
                .log("Poll failed for model directory '{}': {}", ModelKey.name(model), failure.publicMessage());
        if (source.config().isEmpty()) { // otherwise the failure is that of the client's request alone
            live.events().failed(ModelKey.name(model));
            show(model, failure);
        }
        throw source.pollFailed(failure.publicMessage());
    }

    private void show(String model, InferenceException failure) {
        VersionState.Unavailable state = VersionState.Unavailable.of(failure.code(), failure.publicMessage());
        if (VersionPolicy.isNoneLeft(failure)) {
            catalog.withoutVersions(model, state);
        } else {
            catalog.failed(model, state);
        }
    }

    /**
     * Replaces the instances of a version that serves, or loads it again where that is not possible. Adds the wait for the
     * close of removed instances.
     */
    private VersionState update(
            PreparedModel prepared,
            ModelSource source,
            Generation generation,
            Supplier<Generation.Hooks> hooks,
            List<Runnable> waits)
            throws InterruptedException {
        String model = prepared.directory().key();
        long version = generation.model().version();
        try {
            ServedModel before = generation.model();
            ServedModel after = updater.update(prepared, before);
            generation.update(after);
            waits.add(() -> updater.awaitClosed(before, after));
            LOG.atInfo()
                    .addKeyValue("model", ModelKey.name(model))
                    .addKeyValue("version", version)
                    .addKeyValue("instances", generation.model().instances().size())
                    .log("instances updated (model '{}', version {})", ModelKey.name(model), version);
            return new VersionState.Ready(generation);
        } catch (ReloadRequiredException e) {
            LOG.atInfo()
                    .addKeyValue("model", ModelKey.name(model))
                    .addKeyValue("version", version)
                    .addKeyValue("reason", e.reason())
                    .log(
                            "loads again, since its instances cannot be updated while it serves (model '{}', version {}): {}",
                            ModelKey.name(model),
                            version,
                            e.reason());
            return loads.load(prepared, version, source.fileBytes(version), hooks);
        } catch (RuntimeException | VirtualMachineError e) {
            InferenceException failure = failures.of(prepared.directory(), prepared.config(), e);
            return VersionState.Unavailable.of(failure.code(), failure.publicMessage());
        }
    }

    private static boolean isAnyFailed(NavigableMap<Long, VersionState> states) {
        return states.values().stream().anyMatch(VersionState.Unavailable.class::isInstance);
    }

    /** Closes the loaded versions, shows the reasons, and returns the error of the load. */
    private InferenceException fail(
            String model, NavigableMap<Long, VersionState> states, NavigableMap<Long, Generation> updated) {
        NavigableMap<Long, VersionState.Unavailable> reasons = new TreeMap<>();
        states.forEach((version, state) -> {
            if (state instanceof VersionState.Unavailable failed) {
                reasons.put(version, failed);
            }
        });
        String text = describe(reasons);
        VersionState.Unavailable discarded = VersionState.Unavailable.of(
                        ErrorCode.UNAVAILABLE,
                        "not served, since another version of this load failed: " + List.copyOf(reasons.keySet()))
                .counted(reasons.values().stream().anyMatch(VersionState::isCounted));
        reasons.putAll(discard(states, updated, discarded));
        catalog.failed(model, reasons);
        return failure(model, text);
    }

    /** Closes the loaded versions, since a serving ensemble does not fit them; returns the error of the load. */
    private InferenceException refuse(
            String model,
            NavigableMap<Long, VersionState> states,
            NavigableMap<Long, Generation> updated,
            InferenceException cause) {
        VersionState.Unavailable reason = VersionState.Unavailable.of(cause.code(), cause.publicMessage());
        NavigableMap<Long, VersionState.Unavailable> reasons = discard(states, updated, reason);
        catalog.failed(model, reasons);
        return failure(model, reasons.isEmpty() ? cause.publicMessage() : describe(reasons));
    }

    private NavigableMap<Long, VersionState.Unavailable> discard(
            NavigableMap<Long, VersionState> states,
            NavigableMap<Long, Generation> updated,
            VersionState.Unavailable reason) {
        NavigableMap<Long, VersionState.Unavailable> reasons = new TreeMap<>();
        states.descendingMap().forEach((version, state) -> {
            if (state instanceof VersionState.Ready(Generation generation)
                    && !generation.equals(updated.get(version))) {
                live.discard(generation);
                reasons.put(version, reason);
            }
        });
        return reasons;
    }

    private static InferenceException failure(String model, String reasons) {
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT, "load failed for model '" + ModelKey.name(model) + "': " + reasons);
    }

    private static String describe(NavigableMap<Long, VersionState.Unavailable> reasons) {
        StringBuilder text = new StringBuilder();
        reasons.forEach((version, failed) -> text.append("version ")
                .append(version)
                .append(" is at UNAVAILABLE state: ")
                .append(failed.reason())
                .append(";\n"));
        return text.toString();
    }
}
