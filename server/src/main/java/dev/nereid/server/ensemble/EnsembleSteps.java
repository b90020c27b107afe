package dev.nereid.server.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.server.repository.ModelKey;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import inference.ModelEnsembling;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;

/**
 * Finds the models that the steps of ensembles name. Immutable; safe for use by any thread.
 *
 * @param models the models of the server
 */
record EnsembleSteps(ServedModels models) {
    /**
     * Returns the model of each step. A model is looked for in the namespace of the ensemble first, then in all.
     *
     * @param key the key of the ensemble
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
        String own = namespace.isEmpty() ? name : ModelKey.of(namespace, name);
        return models.find(own).isPresent() ? own : models.key(name);
    }

    /**
     * Returns the configuration of the latest version of the model of each step.
     *
     * @param ensemble the name of the ensemble
     * @param candidates the configurations of models that are to take the place of those that serve, by version
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if a model or the version of a step is not loaded
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
            throw notLoaded(ensemble, step);
        }
        return versions.lastEntry().getValue();
    }

    private ModelConfig config(String ensemble, ModelRef step) {
        ModelConfig latest;
        try {
            latest = models.config(ModelRef.latest(step.name()));
        } catch (InferenceException e) {
            String name = ModelKey.name(step.name());
            throw invalid("ensemble '" + ensemble + "' depends on '" + name + "' which has no loaded version. Model '"
                    + name + "' loading failed with error: " + e.publicMessage());
        }
        if (step.version() != ModelRef.LATEST) {
            try {
                models.config(step);
            } catch (InferenceException e) {
                throw notLoaded(ensemble, step);
            }
        }
        return latest;
    }

    private static InferenceException notLoaded(String ensemble, ModelRef step) {
        return invalid("ensemble '" + ensemble + "' depends on '" + ModelKey.name(step.name())
                + "' whose required version " + step.version() + " is not loaded.");
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }
}
