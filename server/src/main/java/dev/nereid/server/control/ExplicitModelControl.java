package dev.nereid.server.control;

import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import java.util.List;
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
        return models.load(load, models.operation(load.isForced()));
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return models.unload(model, dependents);
    }

    @Override
    public CompletionStage<List<ModelStatus>> index() {
        return index.read();
    }
}
