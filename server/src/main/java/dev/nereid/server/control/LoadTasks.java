package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.ModelName;
import dev.nereid.server.dependency.ModelDependencies;
import dev.nereid.server.dependency.ModelRequirer;
import dev.nereid.server.ensemble.StepErrors;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.VersionState;
import dev.nereid.spi.ErrorCode;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads and unloads models, one task at a time for each. Safe for use by any thread.
 *
 * <p>A load finds the model, loads the models that it needs, waits until earlier generations of it are closed if there
 * are too many, and then for a load thread. A task may wait for tasks of models that its model needs, and for no
 * others; since the dependencies have no cycle, tasks cannot block each other.
 */
final class LoadTasks implements RepositoryPoller.Actions {
    private static final Logger LOG = LoggerFactory.getLogger(LoadTasks.class);

    /** How long a load waits for a model that it requires. */
    private static final Duration REQUIRED_TIMEOUT = Duration.ofHours(1);

    /** How long a load waits for the end of earlier generations. */
    private static final Duration DRAIN_TIMEOUT = Duration.ofMinutes(1);

    /** The files of loads up to this size are compared, under the lock of the tasks. In bytes. */
    private static final long MAX_COMPARED = 4L << 20;

    private final ControlTasks tasks;
    private final ModelSources sources;
    private final ModelLoader loader;
    private final CatalogUpdater catalog;
    private final LiveGenerations live;
    private final LoadThreads threads;
    private final ModelDependencies dependencies;

    /** The models with replaced generations, until the models that need them are loaded again. */
    private final Set<String> replaced = ConcurrentHashMap.newKeySet();

    LoadTasks(
            ControlTasks tasks,
            ModelSources sources,
            ModelLoader loader,
            CatalogUpdater catalog,
            LiveGenerations live,
            LoadThreads threads,
            ModelDependencies dependencies) {
        this.tasks = tasks;
        this.sources = sources;
        this.loader = loader;
        this.catalog = catalog;
        this.live = live;
        this.threads = threads;
        this.dependencies = dependencies;
    }

    /**
     * Loads a model, unless it is loaded and nothing of it has changed. Then loads the models that were unloaded because
     * they need it.
     *
     * @param model its key
     * @return completed when the model serves; fails with {@link InferenceException} if it does not
     */
    @Override
    public CompletionStage<Void> load(String model) {
        return ControlTasks.unwrapped(tasks.share(
                        model, "load", () -> loadNow(model, () -> sources.find(model), Reason.REQUESTED, false))
                .thenCompose(_ -> loadDependents(model)));
    }

    /**
     * Loads all versions of a model again, even if the model has not changed. A configuration that a client has given
     * stays as with {@link #load(String)}. Responses that were cached before are not used again.
     *
     * @param model its key
     * @return as {@link #load(String)}
     */
    CompletionStage<Void> reload(String model) {
        return ControlTasks.unwrapped(tasks.share(
                        model, "reload", () -> loadNow(model, () -> sources.find(model), Reason.REQUESTED, true))
                .thenCompose(_ -> loadDependents(model)));
    }

    /**
     * Loads a model with the configuration and files of a client. Files are always new; versions with an unchanged
     * configuration stay, or get other instances. Equal requests that wait in a row are done once, unless their files
     * are large.
     *
     * @param model its key
     * @return as {@link #load(String)}
     */
    CompletionStage<Void> load(String model, ModelControl.Load load) {
        ControlTasks.Work work = () -> loadNow(model, () -> sources.find(model, load), Reason.GIVEN, load.isForced());
        CompletionStage<Void> loaded = isComparable(load) ? tasks.share(model, load, work) : tasks.submit(model, work);
        return ControlTasks.unwrapped(loaded.thenCompose(_ -> loadDependents(model)));
    }

    private static boolean isComparable(ModelControl.Load load) {
        return load.files().values().stream().mapToLong(ByteBuffer::remaining).sum() <= MAX_COMPARED;
    }

    /** Why a model is loaded. */
    private enum Reason {
        /** For its own sake. */
        REQUESTED,
        /** For its own sake, from what a client has sent. */
        GIVEN,
        /** Because another model needs it. */
        NEEDED,
        /** Because a model that it needs was replaced. */
        DEPENDENT,
        /** Because another model has the name of one that it needs. */
        RELINKED;

        /** Returns whether it is loaded for its own sake. */
        boolean isOwn() {
            return this == REQUESTED || this == GIVEN;
        }

        /** Returns whether all its versions are loaded although nothing of it has changed. */
        boolean isWhole() {
            return this == DEPENDENT;
        }
    }

    private CompletionStage<Void> loadNeeded(String model) {
        return tasks.share(model, "needed", () -> loadNow(model, () -> sources.find(model), Reason.NEEDED, false));
    }

    /**
     * Loads the models that were unloaded because a model was unloaded. Also loads the serving models again that need a
     * replaced model. A failure concerns only the model that fails.
     */
    private CompletionStage<Void> loadDependents(String model) {
        CompletionStage<Void> loads = loadWaiting(model);
        for (String dependent : dependencies.withSubstituteOf(model)) {
            loads = loads.thenCompose(_ -> relink(dependent));
        }
        return loads.thenCompose(_ -> reloadDependents(model));
    }

    /**
     * Loads the ensembles again that serve and have a model as a step, if that was replaced. Their failures are theirs
     * alone. Other models that need it find it by its name with each request.
     */
    private CompletionStage<Void> reloadDependents(String model) {
        CompletionStage<Void> loads = CompletableFuture.completedStage(null);
        if (replaced.remove(model)) {
            for (String dependent : ensemblesOf(model)) {
                loads = loads.thenCompose(_ -> reloadDependent(dependent));
            }
        }
        return loads;
    }

    /** Returns the ensembles with a model as a step, directly or in ensembles, each after the ensembles in its steps. */
    private List<String> ensemblesOf(String model) {
        Set<String> changed = new LinkedHashSet<>(List.of(model));
        for (String dependent : dependencies.dependents(model)) {
            boolean isEnsemble = catalog.serving(dependent).values().stream()
                    .allMatch(generation -> generation.model().isEnsemble());
            if (isEnsemble && !Collections.disjoint(changed, dependencies.needed(dependent))) {
                changed.add(dependent);
            }
        }
        changed.remove(model);
        return List.copyOf(changed);
    }

    /**
     * Loads a model again that needs one of the same name in another namespace, if it serves or waits for that. Its failure
     * is its alone.
     */
    private CompletionStage<Void> relink(String dependent) {
        return tasks.share(dependent, "relink", () -> {
                    if (!catalog.serving(dependent).isEmpty() || dependencies.isWaiting(dependent)) {
                        loadNow(dependent, () -> sources.find(dependent), Reason.RELINKED, false);
                    }
                })
                .thenCompose(_ -> reloadDependents(dependent))
                .exceptionally(failure -> notLinked(dependent, failure));
    }

    private static @Nullable Void notLinked(String dependent, Throwable failure) {
        LOG.atWarn()
                .addKeyValue("model", ModelKey.name(dependent))
                .addKeyValue("reason", failure.getMessage())
                .log(
                        "not linked to a model in another repository (model '{}'): {}",
                        ModelKey.name(dependent),
                        failure.getMessage());
        return null;
    }

    /**
     * Links the models that need a model which is not in its repository any more to the model of the same name in
     * another repository, so that they are not unloaded with it. Without such a model they serve until they are
     * unloaded.
     */
    private CompletionStage<Void> linkToOthers(String model) {
        CompletionStage<Void> all = CompletableFuture.completedStage(null);
        if (ModelKey.namespace(model).isEmpty()) {
            return all;
        }
        for (String dependent : dependencies.dependents(model)) {
            all = all.thenCompose(_ -> tasks.submit(dependent, () -> {
                        if (!catalog.serving(dependent).isEmpty() && !sources.isPresent(model)) {
                            loadNow(dependent, () -> sources.find(dependent), Reason.RELINKED, false);
                        }
                    })
                    .thenCompose(_ -> reloadDependents(dependent))
                    .exceptionally(failure -> notLinked(dependent, failure)));
        }
        return all;
    }

    private CompletionStage<Void> reloadDependent(String dependent) {
        return tasks.share(dependent, "dependent", () -> {
                    if (!catalog.serving(dependent).isEmpty()) {
                        loadNow(dependent, () -> sources.find(dependent), Reason.DEPENDENT, false);
                        replaced.remove(dependent);
                    }
                })
                .exceptionally(_ -> null);
    }

    /** Loads the models that were unloaded because a model was unloaded. Their failures are theirs alone. */
    private CompletionStage<Void> loadWaiting(String model) {
        CompletableFuture<?>[] loads = dependencies.waitingFor(model).stream()
                .map(this::loadNeeded)
                .map(load -> load.exceptionally(_ -> null).toCompletableFuture())
                .toArray(CompletableFuture<?>[]::new);
        return CompletableFuture.allOf(loads);
    }

    /**
     * Unloads a model which is not in its repository any more, if it is loaded, and the models that need it and no other one
     * of its name.
     */
    @Override
    public CompletionStage<Void> unload(String model) {
        return ControlTasks.unwrapped(linkToOthers(model).thenCompose(_ -> unloadAll(model, false)));
    }

    /**
     * Unloads a model, if it is loaded, after the models that need it.
     *
     * @param model its key
     * @param withNeeded whether models that it needed, and nothing else needs, are unloaded after it
     * @return completed when none of them takes requests any more; their requests in progress complete afterwards
     */
    CompletionStage<Void> unload(String model, boolean withNeeded) {
        return ControlTasks.unwrapped(unloadAll(model, withNeeded));
    }

    private CompletionStage<Void> unloadAll(String model, boolean withNeeded) {
        ModelDependencies.Unloads unloads = dependencies.unload(model, withNeeded);
        CompletionStage<Void> all = CompletableFuture.completedStage(null);
        for (String dependent : unloads.before()) {
            all = all.thenCompose(_ -> tasks.submit(dependent, () -> {
                if (!catalog.serving(dependent).isEmpty()) { // the reason of one that failed stays
                    unloadNow(dependent);
                }
            }));
        }
        all = all.thenCompose(_ -> tasks.submit(model, () -> unloadNow(model)));
        for (String needed : unloads.after()) {
            all = all.thenCompose(_ -> tasks.submit(needed, () -> {
                if (dependencies.unloadUnused(needed)) {
                    unloadNow(needed);
                }
            }));
        }
        return all;
    }

    /** Unloads a model at once, however many generations of it drain: the bound is kept where a load makes another one. */
    private void unloadNow(String model) {
        boolean isGone = !sources.isPresent(model);
        loader.forget(model, isGone);
        sources.forget(model);
        catalog.unload(model, isGone);
    }

    @Override
    public void retain(Set<String> models) {
        sources.retain(models);
    }

    private void loadNow(String model, Supplier<ModelSource> finding, Reason reason, boolean isForced)
            throws InterruptedException {
        if (reason == Reason.NEEDED && catalog.isWhole(model)) {
            return;
        }
        ModelSource source = find(model, finding, reason == Reason.GIVEN);
        boolean isLoaded = false;
        try {
            if (reason.isOwn()) {
                dependencies.request(model);
            }
            Set<String> steps = loadNeeded(source, reason);
            boolean isLinked = loader.isLinkedTo(model, steps);
            boolean isWhole = isForced || reason.isWhole() || !isLinked;
            loader.refreshPlugins();
            List<Runnable> waits = new ArrayList<>();
            if (isWhole || !loader.isLoadedFrom(source)) {
                awaitDrained(model);
                NavigableMap<Long, Generation> before = catalog.serving(model);
                threads.run(() -> waits.addAll(loader.load(source, isWhole, isForced, new Requirer(model))));
                sources.loaded(source);
                if (!before.isEmpty() && !before.equals(catalog.serving(model))) {
                    replaced.add(model);
                }
            }
            isLoaded = true;
            if (steps.isEmpty()) {
                dependencies.settle(model, required(model, false));
            }
            waits.forEach(Runnable::run); // not on a thread for loads, which the instances' requests may wait for
        } catch (InferenceException e) {
            if (source.isOverridden() && !sources.isPresent(model)) {
                catalog.missing(model); // its files are gone with the request
            }
            throw e;
        } finally {
            dependencies.end(model, isLoaded, !catalog.serving(model).isEmpty());
            source.release();
        }
    }

    /**
     * Loads the models of an ensemble's steps that do not serve, and waits for them. The backend of any other model
     * requires models during its load. Models that its serving versions have required stay needed.
     *
     * @return the keys of the models of all steps
     */
    private Set<String> loadNeeded(ModelSource source, Reason reason) throws InterruptedException {
        String model = source.key();
        try {
            Set<String> steps = sources.needed(source);
            Set<String> needed = steps.isEmpty() ? required(model, reason == Reason.RELINKED) : steps;
            dependencies.begin(model, needed);
            TreeMap<String, CompletionStage<Void>> loads = new TreeMap<>();
            for (String other : reason == Reason.RELINKED ? needed : steps) {
                if (catalog.serving(other).isEmpty()) {
                    catalog.loadingNeeded(other, model);
                    loads.put(other, loadNeeded(other));
                }
            }
            List<InferenceException> failures = new ArrayList<>();
            for (Map.Entry<String, CompletionStage<Void>> load : loads.entrySet()) {
                await(model, load.getKey(), load.getValue()).ifPresent(failures::add);
            }
            if (!failures.isEmpty()) {
                throw failures.getFirst();
            }
            return steps;
        } catch (InferenceException e) {
            LOG.atError().addKeyValue("model", ModelKey.name(model)).log(e.publicMessage()); // which names the model
            catalog.failed(model, VersionState.Unavailable.of(e.code(), e.publicMessage()));
            throw e;
        }
    }

    /**
     * Returns the keys of the models that the versions of a model which serve have required.
     *
     * @param isRelinked whether names may stand for models of other namespaces than before, although the earlier models
     *     serve
     */
    private Set<String> required(String model, boolean isRelinked) {
        Set<String> before = dependencies.needed(model);
        return catalog.serving(model).values().stream()
                .flatMap(generation -> generation.model().required().stream())
                .distinct()
                .flatMap(name -> key(model, name, before, isRelinked).stream())
                .collect(Collectors.toSet());
    }

    private Optional<String> key(String model, String name, Set<String> before, boolean isRelinked) {
        Optional<String> known =
                before.stream().filter(key -> ModelKey.name(key).equals(name)).findFirst();
        return known.filter(key -> !isRelinked && !catalog.serving(key).isEmpty())
                .or(() -> sources.key(ModelKey.namespace(model), name))
                .or(() -> known); // that is gone: the model is unloaded with it
    }

    /** Loads the models that a model's backend requires, on the thread of the load. */
    private final class Requirer implements ModelRequirer {
        private final String model;

        Requirer(String model) {
            this.model = model;
        }

        @Override
        public boolean require(String name) {
            if (!threads.isLoad()) {
                throw new IllegalStateException(
                        "requires: called on another thread (expected: that of Backend.complete or Backend.load)");
            }
            ModelName.check(name);
            String other = sources.key(ModelKey.namespace(model), name)
                    .orElseThrow(
                            () -> notRequired(ErrorCode.INVALID_ARGUMENT, name, "which is not available or ambiguous"));
            if (other.equals(model)) {
                return false;
            }
            dependencies.require(model, other);
            if (catalog.serving(other).isEmpty()) {
                catalog.loadingNeeded(other, model);
                await(other, loadNeeded(other).toCompletableFuture());
            }
            return true;
        }

        private void await(String other, CompletableFuture<Void> load) {
            try {
                if (!threads.awaitLoad(load, REQUIRED_TIMEOUT)) {
                    throw notRequired(
                            ErrorCode.UNAVAILABLE,
                            ModelKey.name(other),
                            "which does not serve after " + REQUIRED_TIMEOUT.toSeconds() + " s");
                }
                ControlTasks.await(load);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
            } catch (InferenceException e) {
                if (!load.isDone()) {
                    throw e;
                }
                String expected = e.code() == ErrorCode.NOT_FOUND ? sources.expected(other) : "";
                throw notRequired(
                        e.code(), ModelKey.name(other), "which has no loaded version: " + e.publicMessage() + expected);
            }
        }

        private InferenceException notRequired(ErrorCode code, String name, String reason) {
            return new InferenceException(
                    code, "model '" + ModelKey.name(model) + "' requires '" + name + "', " + reason);
        }

        @Override
        public List<String> failed() {
            return dependencies.needed(model).stream()
                    .filter(other -> !catalog.leavesReady(other))
                    .map(ModelKey::name)
                    .toList();
        }

        @Override
        public CompletionStage<List<String>> checkReady() {
            CompletionStage<List<String>> unready = CompletableFuture.completedStage(List.of());
            for (String other : dependencies.needed(model)) {
                unready = unready.thenCombine(
                        catalog.checkReady(other),
                        (before, isReady) -> isReady
                                ? before
                                : Stream.concat(before.stream(), Stream.of(ModelKey.name(other)))
                                        .toList());
            }
            return unready;
        }
    }

    /** Waits for the load of a model that another needs; returns why that cannot be loaded, if so. */
    private Optional<InferenceException> await(String model, String needed, CompletionStage<Void> load)
            throws InterruptedException {
        try {
            ControlTasks.await(load);
            return Optional.empty();
        } catch (InferenceException e) {
            String reason = e.publicMessage() + (e.code() == ErrorCode.NOT_FOUND ? sources.expected(needed) : "");
            return Optional.of(
                    catalog.isInvalid(needed) || dependencies.isEnsemble(needed)
                            ? StepErrors.notValid(model, needed, reason)
                            : StepErrors.notLoaded(model, needed, reason));
        }
    }

    /**
     * Finds a model. If a client's configuration or files fail, the failure concerns only the client, and the model's
     * entry does not change.
     */
    private ModelSource find(String model, Supplier<ModelSource> finding, boolean isGiven) {
        try {
            return finding.get();
        } catch (InferenceException e) {
            LOG.atError().addKeyValue("model", ModelKey.name(model)).log(ModelSources.logged(model, e));
            boolean isMaybeThere = e.code() != ErrorCode.UNAVAILABLE || catalog.isKnown(model);
            if (e.code() == ErrorCode.NOT_FOUND) {
                catalog.missing(model);
            } else if (!isGiven && isMaybeThere) {
                live.events().failed(ModelKey.name(model));
                catalog.failed(model, ModelSources.unavailable(model, e));
            }
            throw e;
        }
    }

    private void awaitDrained(String model) throws InterruptedException {
        if (!live.awaitDrained(model, DRAIN_TIMEOUT.toNanos())) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    live.isEnded()
                            ? "Server not ready"
                            : "load failed for model '" + ModelKey.name(model)
                                    + "': earlier loads of it " + live.whatDrains(model) + " after "
                                    + DRAIN_TIMEOUT.toSeconds() + " s (expected: their end; retry later)");
        }
    }
}
