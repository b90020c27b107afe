package dev.nereid.server.control;

import static java.util.Objects.requireNonNull;

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
import org.jspecify.annotations.Nullable;

/**
 * Changes the states of models in the catalog, and drains the generations that leave it. A model is changed by one
 * control task at a time, but for the end of a draining generation, which may come at any moment.
 *
 * <p>The entry of a model is always changed before a generation drains, so that a request which finds a draining
 * generation finds another entry when it looks again.
 */
final class CatalogUpdater {
    private final ServedModels models;
    private final LiveGenerations live;
    private final MeterRegistry meters;

    /** Describes the models that are loaded on demand; empty in other modes. */
    private final Optional<ModelDescriber> describer;

    /** Follows the models that are loaded on demand. Set once, before the first model. */
    private volatile Optional<DemandModels> demand = Optional.empty();

    CatalogUpdater(
            ServedModels models, LiveGenerations live, MeterRegistry meters, Optional<ModelDescriber> describer) {
        this.models = models;
        this.live = live;
        this.meters = meters;
        this.describer = describer;
    }

    /** Lets the demand follow the models. Called once, before the first model is known. */
    void follow(DemandModels follower) {
        demand = Optional.of(follower);
    }

    /** Returns the generations of a model that serve, by version. */
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

    /** Returns whether anything is known of a model. */
    boolean isKnown(String model) {
        return models.find(model).isPresent();
    }

    /** Shows that a model is about to be loaded, unless something of it serves. */
    void loading(String model) {
        show(model, new VersionState.Loading());
    }

    /** Shows that versions are loading. Those that serve go on, and are shown as before. */
    void loading(String model, Collection<Long> versions) {
        models.update(model, entry -> {
            NavigableMap<Long, VersionState> states = unloading(entry);
            versions.forEach(version -> states.put(version, new VersionState.Loading()));
            states.putAll(ready(entry));
            return ModelEntry.of(model, states);
        });
    }

    /** Shows that a model could not be read. What serves goes on, and is shown as before. */
    void failed(String model, VersionState.Unavailable state) {
        show(model, state);
    }

    private void show(String model, VersionState overall) {
        models.update(model, entry -> ready(entry).isEmpty() ? ModelEntry.of(model, overall) : entry);
    }

    /** Shows that versions could not be loaded. What serves goes on, and is shown as before. */
    void failed(String model, Map<Long, VersionState.Unavailable> failures) {
        models.update(model, entry -> {
            NavigableMap<Long, VersionState> states = unloading(entry);
            states.putAll(failures);
            states.putAll(ready(entry));
            return ModelEntry.of(model, states);
        });
    }

    /**
     * Lets versions of a model serve in one step, in place of those that did. Drains what they replace.
     *
     * @param generations all versions that serve from now on
     * @param present the versions in the repository, whose statistics are kept
     * @param isOverridden whether a client sent the files, so that the model cannot be loaded from them again
     */
    void serve(String model, NavigableMap<Long, Generation> generations, Set<Long> present, boolean isOverridden) {
        NavigableMap<Long, Generation> before = serving(model);
        Optional<OnDemandModel> described = describer.map(one -> one.describe(model, generations, isOverridden));
        described.ifPresent(models.onDemand()::add);
        List<Runnable> replaced = new ArrayList<>();
        before.forEach((version, generation) -> {
            if (!generation.equals(generations.get(version))) {
                replaced.add(live.replace(generation, () -> end(model, version, generation, null)));
            }
        });
        models.update(model, entry -> {
            NavigableMap<Long, VersionState> states = unloading(entry);
            before.forEach((version, generation) -> states.put(version, new VersionState.Unloading(generation)));
            generations.forEach((version, generation) -> states.put(version, new VersionState.Ready(generation)));
            return ModelEntry.of(model, states);
        });
        replaced.forEach(Runnable::run);
        described.ifPresent(loaded -> demand.ifPresent(follower -> follower.loaded(loaded)));
        Set<Long> kept = new HashSet<>(present);
        kept.addAll(generations.keySet());
        meters.retain(model, kept);
    }

    /** Lets a model that is not loaded be loaded on demand. */
    void await(OnDemandModel model, Set<Long> versions) {
        demand.ifPresent(follower -> follower.described(model));
        models.onDemand().add(model);
        models.update(model.key(), entry -> {
            NavigableMap<Long, VersionState> states = unloading(entry);
            versions.forEach(version -> states.put(version, new VersionState.OnDemand()));
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
            NavigableMap<Long, VersionState> states = unloading(entry);
            before.keySet().forEach(version -> states.put(version, new VersionState.OnDemand()));
            return ModelEntry.of(model, states);
        });
        before.values().forEach(generation -> live.drain(generation, () -> {}));
        return true;
    }

    /** Describes a model anew, after an update of its generations. */
    void refresh(String model) {
        models.update(model, entry -> entry == null ? null : ModelEntry.of(model, entry.versions()));
    }

    /** Removes a model that was found nowhere, unless something of it serves or completes its requests. */
    void missing(String model) {
        if (serving(model).isEmpty()) {
            models.onDemand().remove(model);
        }
        models.update(model, entry -> ready(entry).isEmpty() && unloading(entry).isEmpty() ? null : entry);
    }

    /**
     * Unloads a model: its versions take no requests from now on, and are closed when they have completed theirs.
     *
     * @param isGone whether the model is not in the repository any more, so that nothing of it is shown afterwards
     */
    void unload(String model, boolean isGone) {
        models.onDemand().remove(model);
        NavigableMap<Long, Generation> before = serving(model);
        models.update(model, entry -> {
            TreeMap<Long, VersionState> states = new TreeMap<>(ready(entry));
            states.replaceAll((version, _) -> new VersionState.Unloading(requireNonNull(before.get(version))));
            states.putAll(unloading(entry));
            if (!isGone && entry != null) {
                entry.versions()
                        .keySet()
                        .forEach(version ->
                                states.putIfAbsent(version, new VersionState.Unavailable(VersionState.UNLOADED)));
            }
            return states.isEmpty() ? null : ModelEntry.of(model, states);
        });
        live.endReplaced(model); // first, so that the oldest generations end first
        before.forEach((version, generation) ->
                live.drain(generation, () -> end(model, version, generation, isGone ? null : VersionState.UNLOADED)));
        demand.ifPresent(follower -> follower.unloaded(model));
    }

    /** Unloads everything, and shows what was still to be loaded as unloaded. Called once, after the last task. */
    void unloadAll() {
        for (String model : models.keys()) {
            models.onDemand().remove(model);
            NavigableMap<Long, Generation> before = serving(model);
            models.update(model, entry -> entry == null ? null : stopped(model, entry));
            before.forEach((version, generation) ->
                    live.drain(generation, () -> end(model, version, generation, VersionState.UNLOADED)));
            live.endReplaced(model);
        }
    }

    private static ModelEntry stopped(String model, ModelEntry entry) {
        VersionState unloaded = new VersionState.Unavailable(VersionState.UNLOADED);
        if (entry.isLoading()) {
            return ModelEntry.of(model, unloaded);
        }
        if (entry.versions().isEmpty()) {
            return entry; // it could not be read, for the reason that is shown
        }
        NavigableMap<Long, VersionState> states = entry.versions();
        states.replaceAll((_, state) -> switch (state) {
            case VersionState.Loading(), VersionState.OnDemand() -> unloaded;
            case VersionState.Ready(Generation generation) -> new VersionState.Unloading(generation);
            case VersionState.Unloading(Generation _), VersionState.Unavailable(String _) -> state;
        });
        return ModelEntry.of(model, states);
    }

    /**
     * Shows the end of a version, unless another generation of it has taken its place.
     *
     * @param reason why the version is not available; {@code null} if it is not shown any more
     */
    private void end(String model, long version, Generation generation, @Nullable String reason) {
        models.update(model, entry -> {
            NavigableMap<Long, VersionState> states = entry == null ? new TreeMap<>() : entry.versions();
            VersionState unloading = new VersionState.Unloading(generation);
            boolean isShown = reason == null
                    ? states.remove(version, unloading)
                    : states.replace(version, unloading, new VersionState.Unavailable(reason));
            if (!isShown) {
                return entry;
            }
            return states.isEmpty() ? null : ModelEntry.of(model, states);
        });
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
