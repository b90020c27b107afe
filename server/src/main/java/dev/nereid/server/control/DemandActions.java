package dev.nereid.server.control;

import dev.nereid.server.demand.ModelActions;
import dev.nereid.server.demand.ModelActions.ModelUse;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.MemoryRefresh;
import dev.nereid.server.lifecycle.OnDemandModels;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;

/** Loads and evicts models by control tasks. Safe for use by any thread; never blocks. */
final class DemandActions implements ModelActions {
    private final LoadTasks loads;
    private final ControlTasks tasks;
    private final CatalogUpdater catalog;
    private final LiveGenerations live;
    private final OnDemandModels models;
    private final MemoryRefresh memory;

    DemandActions(
            LoadTasks loads,
            ControlTasks tasks,
            CatalogUpdater catalog,
            LiveGenerations live,
            OnDemandModels models,
            MemoryRefresh memory) {
        this.loads = loads;
        this.tasks = tasks;
        this.catalog = catalog;
        this.live = live;
        this.models = models;
        this.memory = memory;
    }

    @Override
    public CompletionStage<Void> load(String model) {
        return loads.load(model);
    }

    @Override
    public List<String> group(String model) {
        return models.withNeeded(model);
    }

    @Override
    public CompletionStage<Boolean> evict(String model) {
        AtomicBoolean isEvicted = new AtomicBoolean();
        return tasks.submit(model, () -> isEvicted.set(catalog.evict(model))).thenApply(_ -> isEvicted.get());
    }

    @Override
    public List<ModelUse> uses() {
        Map<String, ModelUse> uses = new HashMap<>();
        for (Generation generation : live.all()) {
            // A model that requests could not load again is never evicted.
            boolean isIdle = generation.isIdle() && models.contains(generation.key());
            ModelUse use = new ModelUse(generation.key(), generation.usedNanos(), isIdle);
            uses.merge(use.key(), use, ModelUse::with);
        }
        return List.copyOf(uses.values());
    }

    @Override
    public void refreshMemory(String model) {
        catalog.serving(model).values().forEach(memory::request);
    }
}
