package dev.nereid.server.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.server.dependency.ModelDependencies;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.ModelEntry;
import dev.nereid.server.lifecycle.ServedModels;
import inference.ModelConfig;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Checks that a load breaks no loaded ensemble. Immutable; safe for use by any thread. */
public final class DependentEnsembles {
    private final ServedModels models;
    private final ModelDependencies dependencies;
    private final EnsembleLoader ensembles;

    /**
     * Creates the checks of a server.
     *
     * @param dependencies which models need which others
     * @param ensembles checks one ensemble
     */
    public DependentEnsembles(ServedModels models, ModelDependencies dependencies, EnsembleLoader ensembles) {
        this.models = models;
        this.dependencies = dependencies;
        this.ensembles = ensembles;
    }

    /**
     * Checks that the ensembles that serve and need a model fit its next generations.
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
            NavigableMap<Long, ModelConfig> changed = new TreeMap<>();
            models.find(ensemble).map(ModelEntry::ready).orElseGet(TreeMap::new).forEach((version, generation) -> {
                List<ModelRef> steps = steps(generation);
                if (steps.stream().map(ModelRef::name).anyMatch(candidates::containsKey)) {
                    ModelConfig config = generation.model().config();
                    changed.put(version, ensembles.check(ensemble, config, steps, candidates));
                }
            });
            if (!changed.isEmpty()) {
                candidates.put(ensemble, changed);
            }
        }
    }

    /**
     * Returns whether the steps of an ensemble that serves are executed by some models.
     *
     * @param serving the generations of a model that serve
     * @param needed the keys of the models that it needs now
     * @return whether it is no ensemble, or its steps are executed by these and no others
     */
    public boolean areLinkedTo(NavigableMap<Long, Generation> serving, Set<String> needed) {
        return serving.values().stream()
                .map(DependentEnsembles::steps)
                .filter(steps -> !steps.isEmpty())
                .allMatch(steps -> steps.stream()
                        .map(ModelRef::name)
                        .collect(Collectors.toSet())
                        .equals(needed));
    }

    /** Returns the models that execute the steps of an ensemble; empty for another model. */
    private static List<ModelRef> steps(Generation generation) {
        return generation.model().identity() instanceof EnsembleIdentity identity ? identity.steps() : List.of();
    }

    private static NavigableMap<Long, ModelConfig> configs(NavigableMap<Long, Generation> generations) {
        NavigableMap<Long, ModelConfig> configs = new TreeMap<>();
        generations.forEach(
                (version, generation) -> configs.put(version, generation.model().config()));
        return configs;
    }
}
