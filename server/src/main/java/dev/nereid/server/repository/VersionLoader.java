package dev.nereid.server.repository;

import static java.util.stream.Collectors.toList;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.BackendTerms;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.InstanceSlot;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.server.classification.Classifier;
import dev.nereid.server.classification.LabelFiles;
import dev.nereid.server.config.ConfigCompletion;
import dev.nereid.server.config.ConfigNormalization;
import dev.nereid.server.config.ConfigValidation;
import dev.nereid.server.config.ModelSettingsReader;
import dev.nereid.server.plugin.BackendRegistry;
import dev.nereid.server.plugin.PluginLogger;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import inference.ModelConfig;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Loads one version of a model: backend, completion, checks, model, instances, scheduler. Immutable; blocks; may be used
 * by several threads at once.
 *
 * <p>A load that fails closes what it made, in reverse order, each once.
 */
final class VersionLoader {
    private final BackendRegistry backends;
    private final LoadOptions options;
    private final SchedulerEnvironment environment;

    VersionLoader(BackendRegistry backends, LoadOptions options, SchedulerEnvironment environment) {
        this.backends = backends;
        this.options = options;
        this.environment = environment;
    }

    /**
     * Loads a version.
     *
     * @param prepared its model
     * @param version the version
     * @return the version, ready to serve, owned by the caller
     * @throws BackendException if the backend is missing or fails
     * @throws InferenceException if the completed configuration is wrong
     */
    ServedModel load(PreparedModel prepared, long version) throws BackendException {
        long started = environment.nanoTime().getAsLong();
        Backend backend = backends.backend(prepared.config().getBackend());
        ModelConfig config = complete(prepared, version, backend);
        BatchStrategies.refuseNative(
                config, prepared.directory().path(), prepared.directory().versionDirectory(version));
        List<InstancePlan> plans = InstancePlan.of(config);
        VersionContext context = context(
                prepared,
                version,
                config,
                plans.stream().map(InstancePlan::device).collect(toList()));
        Map<String, List<String>> labels = LabelFiles.read(prepared.directory().path(), config);
        try (Undo undo = new Undo()) {
            Model model = backend.load(context);
            undo.add(model::close);
            Optional<BatchingStrategy> strategy = BatchStrategies.of(model, config);
            strategy.ifPresent(made -> undo.add(made::close));
            List<ModelInstance> instances =
                    new InstanceFactory(model, backend.traits(), options.processors()).make(plans, undo);
            Parts parts = new Parts(
                    config,
                    context.settings(),
                    terms(config, backend.traits(), model),
                    labels,
                    model,
                    strategy,
                    started);
            ServedModel served = serve(parts, plans, instances, undo);
            undo.keep();
            return served;
        }
    }

    private ModelConfig complete(PreparedModel prepared, long version, Backend backend) throws BackendException {
        ModelConfig config = prepared.config();
        if (options.autoComplete()) {
            Optional<ModelCompletion> found = backend.complete(context(prepared, version, config, List.of()));
            if (found.isEmpty() && !prepared.configured()) {
                throw new BackendException(
                        ErrorCode.NOT_FOUND,
                        "model configuration is not provided for model '" + config.getName() + "'");
            }
            config = ConfigNormalization.normalize(ConfigCompletion.merge(config, found.orElse(ModelCompletion.EMPTY)));
            ConfigValidation.check(config, prepared.directory().name());
            MissingFeatures.check(config);
            ConfigValidation.checkTensors(config);
        }
        config = ConfigNormalization.instanceGroups(config, backend.traits(), options.gpus());
        ConfigValidation.checkInstanceGroups(config, options.gpus());
        return config;
    }

    private static VersionContext context(
            PreparedModel prepared, long version, ModelConfig config, List<Device> devices) {
        return new VersionContext(
                ModelSettingsReader.settings(config, version),
                prepared.directory().path(),
                prepared.directory().versionDirectory(version),
                devices,
                new PluginLogger(config.getBackend(), config.getName()));
    }

    private static BackendTerms terms(ModelConfig config, BackendTraits traits, Model model) {
        BackendTraits.Execution execution = model.execution().orElse(traits.execution());
        return new BackendTerms(config.getBackend(), traits.clientMemory(), execution == BackendTraits.Execution.SHORT);
    }

    /** What a version is made of, but for its instances. */
    private record Parts(
            ModelConfig config,
            ModelSettings settings,
            BackendTerms terms,
            Map<String, List<String>> labels,
            Model model,
            Optional<BatchingStrategy> strategy,
            long loadStartNanos) {}

    /** Hands the instances that run to a scheduler; those that do not stay with the model. */
    private ServedModel serve(Parts parts, List<InstancePlan> plans, List<ModelInstance> instances, Undo undo) {
        List<InstanceSlot> active = new ArrayList<>();
        List<ModelInstance> passive = new ArrayList<>();
        for (int i = 0; i < plans.size(); i++) {
            InstancePlan plan = plans.get(i);
            if (plan.passive()) {
                passive.add(instances.get(i));
            } else {
                active.add(new InstanceSlot(plan.name(), plan.device(), instances.get(i)));
            }
        }
        if (active.isEmpty()) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "model '" + parts.settings().name() + "' has passive instances only (expected: one that runs)");
        }
        BatchingPolicy batching = ModelSettingsReader.batchingPolicy(parts.config());
        ModelPlan plan =
                new ModelPlan(parts.settings(), batching).with(parts.terms()).withStrategy(parts.strategy());
        SchedulerEnvironment surroundings = environment.with(environment
                .cache()
                .filter(cache -> parts.config().getResponseCache().getEnable()));
        // From here on the scheduler closes the instances that run, and the strategy, also when its start fails.
        undo.keep();
        undo.add(parts.model()::close);
        passive.forEach(instance -> undo.add(instance::close));
        ModelScheduler scheduler = ModelScheduler.start(plan, List.copyOf(active), surroundings);
        undo.add(scheduler::close);
        Classifier classifier = new Classifier(parts.settings(), parts.labels(), environment.memory());
        Duration loadTime = Duration.ofNanos(environment.nanoTime().getAsLong() - parts.loadStartNanos());
        return new ServedModel(
                parts.config(), parts.settings(), scheduler, parts.model(), passive, classifier, loadTime);
    }
}
