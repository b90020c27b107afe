package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelStatus;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.ModelLocation;
import dev.nereid.repository.ModelName;
import dev.nereid.repository.ModelRepository;
import dev.nereid.server.lifecycle.VersionState;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ModelControlOptions;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads the models of the start, as the control mode says. Begun once; then safe for use by any thread.
 *
 * <p>As many loads are in progress as there are permits for loads, in the order of names; one more for each that is paused.
 * The models in directories are loaded first, while remote repositories are listed, so that one that cannot be reached does
 * not delay them.
 */
final class StartupModels implements LoadThreads.Follower {
    private static final Logger LOG = LoggerFactory.getLogger(StartupModels.class);

    private final ModelRepository repository;
    private final Function<String, CompletionStage<Void>> load;
    private final Function<String, CompletionStage<Void>> unload;
    private final CatalogUpdater catalog;
    private final ModelControlOptions options;
    private final int window;

    private volatile LoadBatch first;
    private volatile LoadBatch remote;
    private volatile Map<String, String> unreachable = Map.of();
    private volatile boolean isOverdue;

    /** Completed when remote repositories are listed, and the loads of their models have begun. */
    private final CompletableFuture<Void> listed = new CompletableFuture<>();

    /**
     * Creates the loads of a start.
     *
     * @param load loads models by their names in the explicit mode, by their keys in the others
     * @param unload unloads a model by its key
     * @param window how many loads are in progress at a time
     */
    StartupModels(
            ModelRepository repository,
            Function<String, CompletionStage<Void>> load,
            Function<String, CompletionStage<Void>> unload,
            CatalogUpdater catalog,
            ModelControlOptions options,
            int window) {
        this.repository = repository;
        this.load = load;
        this.unload = unload;
        this.catalog = catalog;
        this.options = options;
        this.window = window;
        first = new LoadBatch(List.of(), load);
        remote = first;
    }

    /**
     * Begins the loads, and returns at once.
     *
     * @throws InferenceException if the repository cannot be read, or the name of a model is none
     */
    void begin() {
        boolean isAll = options.mode() != ModelControlMode.EXPLICIT
                || options.startupModels().contains(ModelControlOptions.ALL);
        if (!isAll) {
            options.startupModels().forEach(ModelName::check);
            first = batch(options.startupModels().stream().flatMap(this::keysOf).toList());
            first.begin(window);
            listed.complete(null);
            return;
        }
        ModelRepository.Scan local = repository.scanLocal();
        reportDuplicates(local.duplicates());
        Set<String> models = new LinkedHashSet<>(keys(local));
        options.startupModels().stream()
                .filter(name -> !name.equals(ModelControlOptions.ALL))
                .forEach(name -> {
                    ModelName.check(name);
                    keysOf(name).forEach(models::add); // also models in no repository: their loads say so
                });
        first = batch(models);
        first.begin(window); // which may be extended at once
        if (repository.isRemote()) {
            Thread.ofVirtual().name("remote-start").start(() -> addRemote(local));
        } else {
            listed.complete(null);
        }
    }

    /** Returns the keys of a name: the name itself unless there are namespaces, or if it cannot be found now. */
    private Stream<String> keysOf(String name) {
        if (!repository.hasNamespaces()) {
            return Stream.of(name);
        }
        try {
            List<String> keys =
                    repository.find(name).stream().map(ModelLocation::key).toList();
            return keys.isEmpty() ? Stream.of(name) : keys.stream();
        } catch (InferenceException e) {
            return Stream.of(name); // its load says why
        }
    }

    @Override
    public void paused() {
        first.extend();
        remote.extend();
    }

    @Override
    public void resumed() {
        first.reduce();
        remote.reduce();
    }

    private LoadBatch batch(Collection<String> models) {
        models.forEach(catalog::loading); // before the first load: the server is not ready until all are loaded
        return new LoadBatch(models, load);
    }

    private static List<String> keys(ModelRepository.Scan scan) {
        return scan.models().stream().map(ModelLocation::key).toList();
    }

    /** Loads the models of remote repositories. If a local model has the same name, both are not served. */
    private void addRemote(ModelRepository.Scan local) {
        try {
            ModelRepository.Scan all = repository.scanAll();
            unreachable = all.unreachable();
            unreachable.values().forEach(reason -> LOG.atError().log("failed to poll model repository: {}", reason));
            Set<String> duplicates = new HashSet<>(all.duplicates());
            duplicates.removeAll(local.duplicates());
            for (String key : duplicates) {
                unload.apply(key).whenComplete((_, _) -> reportDuplicates(Set.of(key)));
            }
            List<String> models = new ArrayList<>(keys(all));
            models.removeAll(new HashSet<>(keys(local)));
            remote = batch(models);
            remote.begin(window);
            Set<String> present = new HashSet<>(keys(all));
            present.addAll(all.duplicates());
            repository.retain(present);
        } catch (InferenceException e) {
            LOG.atError().log("failed to poll model repository: {}", e.publicMessage());
            unreachable = Map.of("model repository", e.publicMessage());
        } finally {
            listed.complete(null);
        }
    }

    private void reportDuplicates(Set<String> keys) {
        for (String key : keys) {
            LOG.atError()
                    .addKeyValue("model", ModelKey.name(key))
                    .log("failed to poll model '{}': not unique across all model repositories", ModelKey.name(key));
            catalog.failed(key, new VersionState.Unavailable(ModelSources.DUPLICATE, true));
        }
    }

    /** Returns whether remote repositories are still listed and awaited, so that not all models are known. */
    boolean isListing() {
        return !listed.isDone() && !isOverdue;
    }

    /** Returns whether loads of the start have not ended, or are not known yet. */
    boolean isLoading() {
        return isListing() || !first.isDone() || !remote.isDone();
    }

    /**
     * Waits for the end of all loads.
     *
     * @param needsAll whether to wait for remote repositories however long their listing takes; otherwise as long as
     *     between two scans of the poll mode, after which their models are loaded when they are known
     */
    void await(boolean needsAll) throws InterruptedException {
        first.await();
        try {
            if (needsAll) {
                listed.get();
            } else {
                listed.get(options.pollInterval().toNanos(), TimeUnit.NANOSECONDS);
            }
        } catch (TimeoutException e) {
            isOverdue = true;
        } catch (ExecutionException e) {
            throw new IllegalStateException(e); // it never fails
        }
        remote.await();
    }

    /**
     * Adds the models of the start that are in no repository, and the repositories that cannot be reached.
     *
     * @param shown the failures that the catalog shows
     */
    List<ModelStatus> failures(List<ModelStatus> shown) {
        List<ModelStatus> all = new ArrayList<>(shown);
        Map<String, String> failed = new HashMap<>(first.failures());
        failed.putAll(remote.failures());
        failed.forEach((key, reason) -> {
            String name = ModelKey.name(key);
            if (shown.stream().noneMatch(status -> status.name().equals(name))) {
                all.add(unavailable(name, reason));
            }
        });
        unreachable.forEach((url, reason) -> all.add(unavailable(url, reason)));
        if (isOverdue && !listed.isDone()) {
            all.add(unavailable(
                    "remote model repositories",
                    "not listed after " + options.pollInterval().toMillis()
                            + " ms (their models are loaded as soon as they are)"));
        }
        return all;
    }

    private static ModelStatus unavailable(String name, String reason) {
        return new ModelStatus(name, OptionalLong.empty(), ModelStatus.State.UNAVAILABLE, reason);
    }
}
