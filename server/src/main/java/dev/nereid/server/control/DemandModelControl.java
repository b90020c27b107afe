package dev.nereid.server.control;

import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.demand.DemandModels;
import dev.nereid.server.lifecycle.OnDemandModels;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;

/**
 * Loads and unloads models at the request of clients, where requests load them too. Safe for use by any thread; never
 * blocks.
 *
 * <p>A load reserves memory like the load of a request, and takes up changed files. A model that a client unloads is
 * not served until a client loads it.
 */
final class DemandModelControl implements ModelControl {
    private final NamedModels models;
    private final ModelDescriptions descriptions;
    private final OnDemandModels onDemand;
    private final DemandModels demand;

    DemandModelControl(
            NamedModels models, ModelDescriptions descriptions, OnDemandModels onDemand, DemandModels demand) {
        this.models = models;
        this.descriptions = descriptions;
        this.onDemand = onDemand;
        this.demand = demand;
    }

    @Override
    public CompletionStage<Void> load(Load load) {
        return models.load(load, key -> load(key, models.operation(load.isForced())));
    }

    private CompletionStage<Void> load(String key, Function<String, CompletionStage<Void>> load) {
        CompletionStage<Void> described =
                onDemand.contains(key) ? CompletableFuture.completedStage(null) : descriptions.describe(key);
        return ControlTasks.unwrapped(described
                .thenCompose(_ -> demand.hold(key))
                .thenCompose(hold -> load.apply(key).whenComplete((_, _) -> hold.run())));
    }

    /** Describes a model at the start, and loads it if it is pinned. */
    CompletionStage<Void> begin(String key) {
        return ControlTasks.unwrapped(descriptions
                .describe(key)
                .thenCompose(_ -> onDemand.isPinned(key)
                        ? demand.hold(key).thenAccept(Runnable::run)
                        : CompletableFuture.completedStage(null)));
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return models.unload(model, dependents);
    }

    @Override
    public CompletionStage<List<ModelStatus>> index() {
        return models.index();
    }
}
