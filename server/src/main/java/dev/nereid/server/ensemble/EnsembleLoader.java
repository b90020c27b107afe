package dev.nereid.server.ensemble;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.config.ConfigValidation;
import dev.nereid.scheduler.EnsembleScheduler;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.scheduler.ensemble.EnsembleLimits;
import dev.nereid.scheduler.ensemble.EnsemblePlan;
import dev.nereid.server.classification.Classifier;
import dev.nereid.server.classification.LabelFiles;
import dev.nereid.server.demand.DemandModels;
import dev.nereid.server.dependency.ModelDependencies;
import dev.nereid.server.lifecycle.FileIdentity;
import dev.nereid.server.lifecycle.LoadIdentity;
import dev.nereid.server.lifecycle.MeterRegistry;
import dev.nereid.server.lifecycle.ModelEntry;
import dev.nereid.server.lifecycle.ModelLoadOptions;
import dev.nereid.server.lifecycle.ModelSettingsReader;
import dev.nereid.server.lifecycle.PreparedModel;
import dev.nereid.server.lifecycle.ServedModel;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.spi.ModelSettings;
import inference.ModelConfig;
import inference.ModelEnsembling;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;

/**
 * Loads ensembles, after the models of their steps. Immutable but for the demand, which is set once; safe for use by
 * any thread.
 */
public final class EnsembleLoader {
    private final ServedModels models;
    private final EnsembleSteps steps;
    private final ModelLoadOptions options;
    private final SchedulerEnvironment environment;
    private final MeterRegistry meters;
    private volatile Optional<DemandModels> demand = Optional.empty();

    /**
     * Creates the loader of a server's ensembles.
     *
     * @param options how models are loaded
     * @param environment the services of their schedulers
     * @param meters the statistics of the versions
     * @param dependencies the models that were found for each ensemble
     */
    public EnsembleLoader(
            ServedModels models,
            ModelLoadOptions options,
            SchedulerEnvironment environment,
            MeterRegistry meters,
            ModelDependencies dependencies) {
        this.models = models;
        this.options = options;
        this.environment = environment;
        this.meters = meters;
        steps = new EnsembleSteps(models, dependencies);
    }

    /** Sets the object through which requests load steps on demand. Called once, before the first model is known. */
    public void follow(DemandModels loads) {
        demand = Optional.of(loads);
    }

    /**
     * Loads a version of an ensemble.
     *
     * @return the version, ready to serve, owned by the caller
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if the configuration does not fit
     *     the models of the steps
     */
    public ServedModel load(PreparedModel prepared, long version) {
        long started = environment.clocks().nanoTime().getAsLong();
        String key = prepared.directory().key();
        String name = prepared.directory().name();
        ConfigValidation.checkTensors(prepared.config());
        List<ModelRef> refs = steps.find(key, prepared.config());
        List<ModelConfig> configs = steps.configs(name, refs, Map.of());
        ModelConfig config = checked(prepared, configs);
        ModelSettings settings = ModelSettingsReader.settings(config, version);
        Map<String, List<String>> labels =
                labels(LabelFiles.read(prepared.directory().path(), config), config, refs);
        LoadIdentity files =
                environment.cache().isEmpty() ? LoadIdentity.NONE : new FileIdentity(prepared, config, "", version);
        EnsembleIdentity identity = new EnsembleIdentity(
                files,
                refs,
                models,
                environment.cache().map(CacheAccess::background).orElse(Runnable::run));
        SchedulerEnvironment own = environment.with(ModelSettingsReader.cache(config, environment.cache(), identity));
        EnsembleScheduler scheduler = new EnsembleScheduler(
                EnsemblePlan.of(settings, definitions(config, configs), limits(config)),
                new StepGenerations(models, new ModelRef(key, version), identity, demand),
                options.limits(),
                own,
                meters.of(key, version));
        return ServedModel.ofEnsemble(
                key,
                config,
                settings,
                scheduler,
                new Classifier(settings, labels, environment.memory()),
                Duration.ofNanos(environment.clocks().nanoTime().getAsLong() - started),
                identity);
    }

    private static ModelConfig checked(PreparedModel prepared, List<ModelConfig> configs) {
        ModelConfig config = StepValidation.check(prepared.config(), configs);
        ConfigValidation.check(config, prepared.directory().name()); // again, since it may be decoupled now
        return config;
    }

    /**
     * Returns whether an ensemble fits the models of its steps, as they serve now.
     *
     * @return whether it fits; a load may fail nevertheless, such as for its labels
     */
    public boolean isFitting(PreparedModel prepared) {
        try {
            ConfigValidation.checkTensors(prepared.config());
            List<ModelRef> refs = steps.find(prepared.directory().key(), prepared.config());
            checked(prepared, steps.configs(prepared.directory().name(), refs, Map.of()));
            return true;
        } catch (InferenceException e) {
            return false;
        }
    }

    private static EnsembleLimits limits(ModelConfig config) {
        long max = Integer.toUnsignedLong(config.getEnsembleScheduling().getMaxInflightRequests());
        return new EnsembleLimits((int) Math.min(max, Integer.MAX_VALUE));
    }

    private static List<EnsemblePlan.StepDefinition> definitions(ModelConfig config, List<ModelConfig> configs) {
        List<ModelEnsembling.Step> steps = config.getEnsembleScheduling().getStepList();
        List<EnsemblePlan.StepDefinition> definitions = new ArrayList<>();
        for (int i = 0; i < configs.size(); i++) {
            definitions.add(new EnsemblePlan.StepDefinition(
                    steps.get(i).getModelName(),
                    steps.get(i).getInputMapMap(),
                    steps.get(i).getOutputMapMap(),
                    configs.get(i).getModelTransactionPolicy().getDecoupled()));
        }
        return definitions;
    }

    /** Adds the labels of the steps to outputs without a label file. */
    private Map<String, List<String>> labels(Map<String, List<String>> own, ModelConfig config, List<ModelRef> refs) {
        Map<String, List<String>> labels = new HashMap<>();
        List<ModelEnsembling.Step> mapped = config.getEnsembleScheduling().getStepList();
        for (int i = 0; i < refs.size(); i++) {
            ModelRef step = refs.get(i);
            mapped.get(i).getOutputMapMap().forEach((output, tensor) -> {
                List<String> found = models.labels(step, output);
                if (!found.isEmpty()) {
                    labels.put(tensor, found);
                }
            });
        }
        labels.putAll(own);
        return labels;
    }

    /**
     * Checks a loaded ensemble against models that are to replace serving ones. Its data flow was planned for steps of
     * one response or of many, so the number of responses may not change.
     *
     * @param candidates the configurations of the new models, by key and version
     * @return the configuration of the ensemble as it would be loaded
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} with the reason if it does not fit
     */
    ModelConfig check(
            String key,
            ModelConfig ensemble,
            List<ModelRef> refs,
            Map<String, NavigableMap<Long, ModelConfig>> candidates) {
        List<ModelConfig> serving = steps.configs(ensemble.getName(), refs, Map.of());
        List<ModelConfig> next = steps.configs(ensemble.getName(), refs, candidates);
        ModelConfig checked = StepValidation.check(ensemble, next);
        for (int i = 0; i < next.size(); i++) {
            boolean decoupled = next.get(i).getModelTransactionPolicy().getDecoupled();
            if (decoupled != serving.get(i).getModelTransactionPolicy().getDecoupled()) {
                throw StepErrors.decoupledChanged(key, refs.get(i).name(), decoupled);
            }
        }
        ConfigValidation.check(checked, ensemble.getName());
        return checked;
    }

    /** Finds the models that the steps of ensembles name. Immutable; safe for use by any thread. */
    private record EnsembleSteps(ServedModels models, ModelDependencies dependencies) {
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
}
