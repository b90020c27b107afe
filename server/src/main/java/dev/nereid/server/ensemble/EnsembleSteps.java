package dev.nereid.server.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.repository.ModelKey;
import dev.nereid.server.dependency.ModelDependencies;
import dev.nereid.server.lifecycle.ModelEntry;
import dev.nereid.server.lifecycle.ServedModels;
import inference.ModelConfig;
import inference.ModelEnsembling;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;

/** Finds the models that the steps of ensembles name. Immutable; safe for use by any thread. */
record EnsembleSteps(ServedModels models, ModelDependencies dependencies) {
    /**
     * Returns the model of each step, as it was found and loaded for the ensemble. If there is none, it searches the
     * namespace of the ensemble first, then all.
     */
    List<ModelRef> find(String key, ModelConfig ensemble) {
        List<ModelRef> steps = new ArrayList<>();
        for (ModelEnsembling.Step step : ensemble.getEnsembleScheduling().getStepList()) {
            steps.add(new ModelRef(key(key, step.getModelName()), step.getModelVersion()));
        }
        return List.copyOf(steps);
    }

    private String key(String ensemble, String name) {
        String namespace = ModelKey.namespace(ensemble);
        if (namespace.isEmpty()) {
            return models.find(name).isPresent() ? name : models.key(name);
        }
        String own = ModelKey.of(namespace, name);
        return dependencies.needed(ensemble).stream()
                .filter(key -> ModelKey.name(key).equals(name))
                .findFirst()
                .orElseGet(() -> models.find(own).isPresent() ? own : models.key(name));
    }

    /**
     * Returns the configuration of the latest version of the model of each step.
     *
     * @param candidates the configurations of models that are to replace serving ones, by version
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if a model or the version of a step is not loaded
     */
    List<ModelConfig> configs(
            String ensemble, List<ModelRef> steps, Map<String, NavigableMap<Long, ModelConfig>> candidates) {
        List<ModelConfig> configs = new ArrayList<>();
        for (ModelRef step : steps) {
            NavigableMap<Long, ModelConfig> candidate = candidates.get(step.name());
            configs.add(candidate == null ? config(ensemble, step) : config(ensemble, step, candidate));
        }
        return configs;
    }

    private static ModelConfig config(String ensemble, ModelRef step, NavigableMap<Long, ModelConfig> versions) {
        if (step.version() != ModelRef.LATEST && !versions.containsKey(step.version())) {
            throw StepErrors.versionNotLoaded(ensemble, step.name(), step.version());
        }
        return versions.lastEntry().getValue();
    }

    private ModelConfig config(String ensemble, ModelRef step) {
        ModelConfig latest;
        try {
            latest = models.config(ModelRef.latest(step.name()));
        } catch (InferenceException e) {
            throw unusable(ensemble, step.name(), e.publicMessage());
        }
        if (step.version() != ModelRef.LATEST) {
            try {
                models.config(step);
            } catch (InferenceException e) {
                throw StepErrors.versionNotLoaded(ensemble, step.name(), step.version());
            }
        }
        return latest;
    }

    /**
     * Returns the error of a model that serves no version: it is not valid as a whole, or its versions could not be
     * loaded.
     */
    private InferenceException unusable(String ensemble, String step, String otherwise) {
        Optional<ModelEntry> entry = models.find(step);
        String reason = entry.flatMap(ModelEntry::reason).orElse(otherwise);
        return entry.isPresent() && entry.get().isInvalid()
                ? StepErrors.notValid(ensemble, step, reason)
                : StepErrors.notLoaded(ensemble, step, reason);
    }
}
