package dev.nereid.server.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.server.dependency.ModelDependencies;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.ModelEntry;
import dev.nereid.server.lifecycle.ServedModels;
import inference.ModelConfig;
import java.util.HashMap;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/** Checks that a load breaks no loaded ensemble. Immutable; safe for use by any thread. */
public final class DependentEnsembles {
    private final ServedModels models;
    private final ModelDependencies dependencies;
    private final EnsembleLoader ensembles;

    /**
     * Creates the checks of a server.
     *
     * @param models the models of the server
     * @param dependencies which models need which others
     * @param ensembles checks one ensemble
     */
    public DependentEnsembles(ServedModels models, ModelDependencies dependencies, EnsembleLoader ensembles) {
        this.models = models;
        this.dependencies = dependencies;
        this.ensembles = ensembles;
    }

    /**
     * Checks that the ensembles that serve and need a model fit what is to serve in its place.
     *
     * @param model its key
     * @param serving the generations that are to serve, by version
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} with the reason of the first ensemble
     *     that does not fit
     */
    public void check(String model, NavigableMap<Long, Generation> serving) {
        Map<String, NavigableMap<Long, ModelConfig>> candidates = new HashMap<>();
        candidates.put(model, configs(serving));
        for (String ensemble : dependencies.dependents(model)) {
            NavigableMap<Long, Generation> ready =
                    models.find(ensemble).map(ModelEntry::ready).orElseGet(TreeMap::new);
            NavigableMap<Long, ModelConfig> changed = new TreeMap<>();
            configs(ready)
                    .forEach((version, config) -> changed.put(version, ensembles.check(ensemble, config, candidates)));
            if (!changed.isEmpty()) {
                candidates.put(ensemble, changed);
            }
        }
    }

    private static NavigableMap<Long, ModelConfig> configs(NavigableMap<Long, Generation> generations) {
        NavigableMap<Long, ModelConfig> configs = new TreeMap<>();
        generations.forEach(
                (version, generation) -> configs.put(version, generation.model().config()));
        return configs;
    }
}
