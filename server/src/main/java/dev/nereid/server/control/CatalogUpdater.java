package dev.nereid.server.control;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.repository.ModelKey;
import dev.nereid.server.demand.DemandModels;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.MeterRegistry;
import dev.nereid.server.lifecycle.ModelDescriber;
import dev.nereid.server.lifecycle.ModelEntry;
import dev.nereid.server.lifecycle.OnDemandModel;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.server.lifecycle.VersionState;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Changes the states of models in the catalog, and drains the generations that leave it. A model is changed by one
 * control task at a time, but for the end of a draining generation, which may come at any moment.
 *
 * <p>The entry of a model is always changed before a generation drains, so that a request which finds a draining
 * generation finds another entry when it searches again.
 */
final class CatalogUpdater {
    /** The maximum number of unloaded models that are shown. */
    static final int MAX_UNLOADED = 10_000;

    /** The maximum number of versions of a model that are shown after their end; the highest ones are. */
    static final int MAX_UNLOADED_VERSIONS = 100;

    private final ServedModels models;
    private final LiveGenerations live;
    private final MeterRegistry meters;

    /** Describes the models that are loaded on demand; empty in other modes. */
    private final Optional<ModelDescriber> describer;

    /** Set if the readiness of the server depends on every load, since clients request none. */
    private final boolean countsAll;

    private final UnloadedModels unloaded = new UnloadedModels(MAX_UNLOADED);

    /** Follows the models that are loaded on demand. Set once, before the first model. */
    private volatile Optional<DemandModels> demand = Optional.empty();

    CatalogUpdater(
            ServedModels models,
            LiveGenerations live,
            MeterRegistry meters,
            Optional<ModelDescriber> describer,
            boolean countsAll) {
        this.models = models;
        this.live = live;
        this.meters = meters;
        this.describer = describer;
        this.countsAll = countsAll;
    }

    /** Sets the follower of the models that are loaded on demand. Called once, before the first model is known. */
    void follow(DemandModels follower) {
        demand = Optional.of(follower);
    }

    NavigableMap<Long, Generation> serving(String model) {
        return models.find(model).map(ModelEntry::ready).orElseGet(TreeMap::new);
    }

    /** Returns whether every version of a model serves, and there is one. */
    boolean isWhole(String model) {
        return models.find(model).filter(ModelEntry::isWhole).isPresent();
    }

    /** Returns whether a model could not be loaded as a whole. */
    boolean isInvalid(String model) {
        return models.find(model).filter(ModelEntry::isInvalid).isPresent();
    }

    /** Returns whether a model leaves the server ready. Never blocks. */
    boolean leavesReady(String model) {
        try {
            return models.leavesReady(ModelRef.latest(model));
        } catch (InferenceException e) { // nothing is known of it
            return false;
        }
    }

    /** Checks whether a model can serve. Never blocks; the stage completes within seconds, on any thread. */
    CompletionStage<Boolean> checkReady(String model) {
        return models.checkReady(ModelRef.latest(model))
                .handle((result, _) -> result != null && result.isReady()); // none if nothing is known of it
    }

    /** Returns whether anything is known of a model. */
    boolean isKnown(String model) {
        return models.find(model).isPresent();
    }

    /**
     * Shows that a model of the start is about to be loaded, unless something of it serves. The server is not ready until
     * it is loaded, or has failed before a version of it existed.
     */
    void loading(String model) {
        models.update(
                model,
                entry -> ready(entry).isEmpty()
                        ? ModelEntry.of(model, new VersionState.Loading(true), ended(entry))
                        : entry);
    }

    /** Shows that a model is loaded with one of the start that needs it, as if it were of the start. */
    void loadingNeeded(String model, String dependent) {
        if (models.find(dependent)
                .filter(entry -> entry.isLoading() && entry.isCounted())
                .isPresent()) {
            loading(model);
        }
    }

    /**
     * Shows that versions are loading. Serving versions go on, and are shown as before. If a client asked for the load,
     * the server stays ready meanwhile.
     */
    void loading(String model, Collection<Long> versions) {
        models.update(model, entry -> {
            NavigableMap<Long, VersionState> states = ended(entry);
            boolean isCounted = isCounted(entry);
            versions.forEach(version -> states.put(version, new VersionState.Loading(isCounted)));
            states.putAll(ready(entry));
            return ModelEntry.of(model, states);
        });
    }

    /**
     * Shows that a model could not be read. Serving versions continue, and are shown as before. The readiness of the
     * server stays as it was, since no version exists that failed.
     */
    void failed(String model, VersionState.Unavailable state) {
        models.update(
                model,
                entry -> ready(entry).isEmpty()
                        ? ModelEntry.of(model, state.counted(hasFailed(entry)), ended(entry))
                        : entry);
    }

    /** Shows that a model has no version that can be loaded, as {@link #failed(String, VersionState.Unavailable)} does. */
    void withoutVersions(String model, VersionState.Unavailable state) {
        models.update(
                model,
                entry -> ready(entry).isEmpty()
                        ? ModelEntry.withoutVersions(model, state.counted(hasFailed(entry)), ended(entry))
                        : entry);
    }

    /**
     * Shows that versions could not be loaded. Serving versions continue, and are shown as before. Because of the
     * failure the server is not ready, unless a client asked for the load.
     */
    void failed(String model, Map<Long, VersionState.Unavailable> failures) {
        models.update(model, entry -> {
            NavigableMap<Long, VersionState> states = ended(entry);
            boolean isCounted = isCounted(entry);
            failures.forEach((version, state) -> states.put(version, state.counted(isCounted && state.isCounted())));
            states.putAll(ready(entry));
            return ModelEntry.of(model, states);
        });
    }

    /** Returns whether the readiness of the server depends on the load of a model. A retry does not change that. */
    private boolean isCounted(@Nullable ModelEntry entry) {
        return countsAll || (entry != null && entry.isCounted());
    }

    /** Returns whether the server is not ready because a load of a model has failed. */
    private static boolean hasFailed(@Nullable ModelEntry entry) {
        return entry != null && entry.hasCountedFailure();
    }

    /**
     * Replaces the serving versions of a model in one step. Drains the replaced generations.
     *
     * @param generations all versions that serve from now on
     * @param present the versions in the repository; their statistics are kept
     * @param isOverridden whether a client sent the files, so that the model cannot be loaded from them again
     */
    void serve(String model, NavigableMap<Long, Generation> generations, Set<Long> present, boolean isOverridden) {
        NavigableMap<Long, Generation> before = serving(model);
        Optional<OnDemandModel> described =
                describer.map(descriptions -> descriptions.describe(model, generations, isOverridden));
        described.ifPresent(models.onDemand()::add);
        List<Runnable> replaced = new ArrayList<>();
        before.forEach((version, generation) -> {
            if (!generation.equals(generations.get(version))) {
                replaced.add(live.replace(generation, () -> end(model, version, generation, false)));
            }
        });
        models.update(model, entry -> {
            NavigableMap<Long, VersionState> states = ended(entry);
            before.forEach((version, generation) -> states.put(version, new VersionState.Unloading(generation)));
            generations.forEach((version, generation) -> states.put(version, new VersionState.Ready(generation)));
            return ModelEntry.of(model, states);
        });
        unloaded.remove(model);
        replaced.forEach(Runnable::run);
        described.ifPresent(loaded -> demand.ifPresent(follower -> follower.loaded(loaded)));
        Set<Long> kept = new HashSet<>(present);
        kept.addAll(generations.keySet());
        meters.retain(model, kept);
    }

    /** Adds a model that is not loaded, and is loaded on demand. */
    void await(OnDemandModel model, Set<Long> versions) {
        demand.ifPresent(follower -> follower.described(model));
        models.onDemand().add(model);
        models.update(model.key(), entry -> {
            NavigableMap<Long, VersionState> states = ended(entry);
            boolean isCounted = isCounted(entry);
            versions.forEach(version -> states.put(version, new VersionState.OnDemand(isCounted)));
            states.putAll(ready(entry));
            return ModelEntry.of(model.key(), states);
        });
    }

    /**
     * Unloads a model that nothing uses, until it is loaded on demand again.
     *
     * @return whether it is unloaded; otherwise something uses it, and nothing has changed
     */
    boolean evict(String model) {
        NavigableMap<Long, Generation> before = serving(model);
        if (!models.onDemand().contains(model) || !live.suspend(before.values())) {
            return false;
        }
        models.update(model, entry -> {
            NavigableMap<Long, VersionState> states = ended(entry);
            before.keySet().forEach(version -> states.put(version, new VersionState.OnDemand(false)));
            return ModelEntry.of(model, states);
        });
        before.values().forEach(generation -> live.drain(generation, () -> {}));
        return true;
    }

    /** Describes a model again, after an update of its generations. */
    void refresh(String model) {
        models.update(model, entry -> entry == null ? null : entry.with(entry.versions()));
    }

    /** Forgets the failure of a model that no repository has. Its earlier versions are shown as unloaded. */
    void missing(String model) {
        if (serving(model).isEmpty()) {
            models.onDemand().remove(model);
        }
        models.update(model, entry -> ready(entry).isEmpty() ? ended(model, entry) : entry);
    }

    /**
     * Unloads a model: its versions take no requests from now on, and are closed when they have completed theirs. They are
     * shown as unloaded afterwards.
     *
     * @param isGone whether the model is not in the repository any more. With namespaces nothing of it is shown then, so
     *     that its name means the models of other namespaces
     */
    void unload(String model, boolean isGone) {
        models.onDemand().remove(model);
        boolean isForgotten = isGone && !ModelKey.namespace(model).isEmpty();
        NavigableMap<Long, Generation> before = serving(model);
        models.update(model, entry -> {
            TreeMap<Long, VersionState> states = new TreeMap<>(ready(entry));
            states.replaceAll((version, _) -> new VersionState.Unloading(requireNonNull(before.get(version))));
            states.putAll(unloading(entry));
            if (!isForgotten && entry != null) {
                entry.versions()
                        .keySet()
                        .forEach(version -> states.putIfAbsent(version, VersionState.Unavailable.unloaded()));
            }
            return states.isEmpty() ? null : ModelEntry.of(model, states);
        });
        live.endReplaced(model); // first, so that the oldest generations end first
        before.forEach(
                (version, generation) -> live.drain(generation, () -> end(model, version, generation, isForgotten)));
        demand.ifPresent(follower -> follower.unloaded(model));
        if (isKnown(model)) {
            limitUnloaded(model);
        }
    }

    /** Records an unloaded model, and forgets another one if there are too many. */
    private void limitUnloaded(String model) {
        unloaded.add(model)
                .ifPresent(first -> models.update(first, entry -> entry != null && entry.isUnloaded() ? null : entry));
    }

    /**
     * Unloads everything, and shows models that are still to be loaded as unloaded. Called once, after the last task.
     */
    void unloadAll() {
        for (String model : models.keys()) {
            models.onDemand().remove(model);
            NavigableMap<Long, Generation> before = serving(model);
            models.update(model, entry -> entry == null ? null : stopped(model, entry));
            before.forEach(
                    (version, generation) -> live.drain(generation, () -> end(model, version, generation, false)));
            live.endReplaced(model);
        }
    }

    private static ModelEntry stopped(String model, ModelEntry entry) {
        NavigableMap<Long, VersionState> states = entry.versions();
        if (entry.isLoading()) {
            return ModelEntry.of(model, VersionState.Unavailable.unloaded(), states);
        }
        states.replaceAll((_, state) -> switch (state) {
            case VersionState.Loading(boolean _), VersionState.OnDemand(boolean _) ->
                VersionState.Unavailable.unloaded();
            case VersionState.Ready(Generation generation) -> new VersionState.Unloading(generation);
            case VersionState.Unloading(Generation _), VersionState.Unavailable(String _, boolean _) -> state;
        });
        return entry.with(states); // if it could not be read, the reason is shown as before
    }

    /**
     * Shows the end of a version, unless another generation of it has taken its place.
     *
     * @param isForgotten whether the version is not shown any more, in place of as unloaded
     */
    private void end(String model, long version, Generation generation, boolean isForgotten) {
        models.update(model, entry -> {
            if (entry == null) {
                return null;
            }
            NavigableMap<Long, VersionState> states = entry.versions();
            VersionState unloading = new VersionState.Unloading(generation);
            boolean isShown = isForgotten
                    ? states.remove(version, unloading)
                    : states.replace(version, unloading, VersionState.Unavailable.unloaded());
            if (!isShown) {
                return entry;
            }
            return states.isEmpty() ? null : entry.with(states);
        });
        if (models.find(model).filter(ModelEntry::isUnloaded).isPresent()) {
            limitUnloaded(model); // also if it was forgotten while its last requests completed
        }
    }

    /** Returns the entry with the versions that have served before alone; {@code null} if there are none. */
    private static @Nullable ModelEntry ended(String model, @Nullable ModelEntry entry) {
        NavigableMap<Long, VersionState> states = ended(entry);
        return states.isEmpty() ? null : ModelEntry.of(model, states);
    }

    /** Returns the versions that have served before: the ones that complete their requests, and the highest others. */
    private static NavigableMap<Long, VersionState> ended(@Nullable ModelEntry entry) {
        NavigableMap<Long, VersionState> states = new TreeMap<>();
        if (entry != null) {
            int unloadedCount = 0;
            for (Map.Entry<Long, VersionState> version :
                    entry.versions().descendingMap().entrySet()) {
                VersionState state = version.getValue();
                boolean isKept = state.isUnloaded() && unloadedCount++ < MAX_UNLOADED_VERSIONS;
                if (isKept || state instanceof VersionState.Unloading) {
                    states.put(version.getKey(), state);
                }
            }
        }
        return states;
    }

    private static NavigableMap<Long, VersionState> ready(@Nullable ModelEntry entry) {
        return only(entry, VersionState.Ready.class);
    }

    private static NavigableMap<Long, VersionState> unloading(@Nullable ModelEntry entry) {
        return only(entry, VersionState.Unloading.class);
    }

    private static NavigableMap<Long, VersionState> only(
            @Nullable ModelEntry entry, Class<? extends VersionState> type) {
        NavigableMap<Long, VersionState> states = new TreeMap<>();
        if (entry != null) {
            states.putAll(entry.versions());
            states.values().removeIf(state -> !type.isInstance(state));
        }
        return states;
    }
}
