package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.repository.ModelName;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Loads and unloads models at the request of clients. Safe for use by any thread; never blocks. */
final class ExplicitModelControl implements ModelControl {
    private final NamedModels models;
    private final RepositoryIndex index;

    ExplicitModelControl(NamedModels models, RepositoryIndex index) {
        this.models = models;
        this.index = index;
    }

    @Override
    public CompletionStage<Void> load(Load load) {
        try {
            ModelName.check(load.model());
        } catch (InferenceException e) {
            return CompletableFuture.failedStage(e);
        }
        boolean isPlain = load.config().isEmpty() && load.files().isEmpty();
        return isPlain ? models.load(load.model(), load.isForced()) : models.load(load);
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        // As that of an unknown model, which the reference server does not refuse either.
        return ModelName.isPossible(model) ? models.unload(model, dependents) : CompletableFuture.completedStage(null);
    }

    @Override
    public CompletionStage<List<ModelStatus>> index() {
        return index.read();
    }
}
