package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.repository.ModelName;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.spi.ErrorCode;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;

/**
 * Loads and unloads models by the names that clients give. The control of the explicit mode. Safe for use by any thread;
 * never blocks.
 *
 * <p>Where a server has namespaces, a name means the models of all namespaces; elsewhere a name is the key of one model.
 */
final class NamedModels implements ModelControl {
    private final LoadTasks loads;
    private final ModelSources sources;
    private final ControlTasks tasks;
    private final ServedModels models;
    private final boolean hasNamespaces;
    private final RepositoryIndex index;

    NamedModels(
            LoadTasks loads,
            ModelSources sources,
            ControlTasks tasks,
            ServedModels models,
            boolean hasNamespaces,
            RepositoryIndex index) {
        this.loads = loads;
        this.sources = sources;
        this.tasks = tasks;
        this.models = models;
        this.hasNamespaces = hasNamespaces;
        this.index = index;
    }

    /**
     * Loads all models with a name.
     *
     * @param name a checked name
     * @param isForced whether unchanged models that are loaded already are loaded again
     * @return completed when all of them serve; fails with {@link InferenceException} if one does not
     */
    CompletionStage<Void> load(String name, boolean isForced) {
        return load(name, operation(isForced));
    }

    @Override
    public CompletionStage<Void> load(Load load) {
        return load(load, operation(load.isForced()));
    }

    Function<String, CompletionStage<Void>> operation(boolean isForced) {
        return isForced ? loads::reload : loads::load;
    }

    /**
     * Loads all models with a name by another operation.
     *
     * @param name a checked name
     * @param load loads a model by its key
     * @return completed when all of them are loaded; fails if one is not
     */
    CompletionStage<Void> load(String name, Function<String, CompletionStage<Void>> load) {
        return hasNamespaces
                ? ControlTasks.unwrapped(find(name).thenCompose(keys -> all(keys, load)))
                : load.apply(name);
    }

    /**
     * Loads models at the request of a client.
     *
     * @param plain loads a model by its key, if the request has neither a configuration nor files
     */
    CompletionStage<Void> load(Load load, Function<String, CompletionStage<Void>> plain) {
        try {
            ModelName.check(load.model());
        } catch (InferenceException e) {
            return CompletableFuture.failedStage(e);
        }
        boolean isPlain = load.config().isEmpty() && load.files().isEmpty();
        return isPlain ? load(load.model(), plain) : loadGiven(load);
    }

    /** Loads a model with the configuration and files of a client. The name has to mean one model. */
    private CompletionStage<Void> loadGiven(Load load) {
        if (!hasNamespaces) {
            return loads.load(load.model(), load);
        }
        return ControlTasks.unwrapped(find(load.model()).thenCompose(keys -> {
            if (keys.size() > 1) {
                return CompletableFuture.failedStage(new InferenceException(
                        ErrorCode.INVALID_ARGUMENT,
                        "There are " + keys.size() + " identifiers of model '" + load.model()
                                + "' in the repositories (expected: one, for a load with parameters)"));
            }
            return loads.load(keys.iterator().next(), load);
        }));
    }

    @Override
    public CompletionStage<Void> unload(String name, boolean withNeeded) {
        if (!ModelName.isPossible(name)) { // unknown, which the reference server does not refuse either
            return CompletableFuture.completedStage(null);
        }
        Set<String> keys = models.keys(name);
        return all(keys.isEmpty() ? Set.of(name) : keys, key -> loads.unload(key, withNeeded));
    }

    @Override
    public CompletionStage<List<ModelStatus>> index() {
        return index.read();
    }

    /** Finds the keys of a name in the repository; the name itself if there is none. */
    private CompletionStage<Set<String>> find(String name) {
        AtomicReference<Set<String>> found = new AtomicReference<>(Set.of());
        return tasks.submit(name, () -> found.set(sources.keys(name)))
                .thenApply(_ -> found.get().isEmpty() ? Set.of(name) : found.get());
    }

    private static CompletionStage<Void> all(
            Collection<String> keys, Function<String, CompletionStage<Void>> operation) {
        return ControlTasks.unwrapped(CompletableFuture.allOf(keys.stream()
                .map(key -> operation.apply(key).toCompletableFuture())
                .toArray(CompletableFuture<?>[]::new)));
    }
}
