package dev.nereid.server.lifecycle;

import static java.util.stream.Collectors.toList;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.NamedTensor;
import dev.nereid.plugin.BackendLease;
import dev.nereid.plugin.BackendRegistry;
import dev.nereid.plugin.PluginLogger;
import dev.nereid.plugin.boundary.KeptObjects;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.config.BatchingStrategyFactory;
import dev.nereid.repository.config.ConfigCompletion;
import dev.nereid.repository.config.MisspeltParameters;
import dev.nereid.repository.files.FileCopies;
import dev.nereid.repository.files.VersionFiles;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.scheduler.sequence.SequencePlan;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.server.classification.Classifier;
import dev.nereid.server.classification.LabelFiles;
import dev.nereid.server.dependency.RequiredModels;
import dev.nereid.server.executor.ModelExecutor;
import dev.nereid.server.instance.BackendInstance;
import dev.nereid.server.instance.InstanceFactory;
import dev.nereid.server.instance.InstancePlan;
import dev.nereid.server.instance.InstanceStarts;
import dev.nereid.server.instance.Rollback;
import dev.nereid.server.lifecycle.VersionCompletion.LoadScope;
import dev.nereid.server.memory.ReportedMemory;
import dev.nereid.server.request.RequestChecks;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.server.response.ResponseHolders;
import dev.nereid.server.warmup.RunningWarmups;
import dev.nereid.server.warmup.WarmupSamples;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelSettings;
import inference.ModelConfig;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import java.util.function.Function;

/**
 * Loads one version of a model: backend, completion, checks, model, instances, scheduler. Immutable; blocks; may be
 * used by several threads at once.
 *
 * <p>A load that fails closes everything that it created, in reverse order, each object once.
 */
public final class VersionLoader {
    private final BackendRegistry backends;
    private final FileCopies copies;
    private final ModelLoadOptions options;
    private final SchedulerEnvironment environment;
    private final RunningWarmups warmups;
    private final ModelLoadWatch watch;
    private final MeterRegistry meters;
    private final Function<ResponseHolder, ModelClient> clients;
    private final ResponseHolders holders;
    private final InstanceStarts starts;

    /**
     * Creates the loader of a server's versions.
     *
     * @param copies the copies of models' files for backends
     * @param options how they are loaded
     * @param environment the services of their schedulers
     * @param warmups knows the warm-ups in progress
     * @param watch reports overdue loads
     * @param clients creates the client of a version for other models
     * @param holders the models that hold responses of others
     * @param starts waits for the starts of instances
     */
    public VersionLoader(
            BackendRegistry backends,
            FileCopies copies,
            ModelLoadOptions options,
            SchedulerEnvironment environment,
            RunningWarmups warmups,
            ModelLoadWatch watch,
            MeterRegistry meters,
            Function<ResponseHolder, ModelClient> clients,
            ResponseHolders holders,
            InstanceStarts starts) {
        this.starts = starts;
        this.clients = clients;
        this.holders = holders;
        this.meters = meters;
        this.watch = watch;
        this.backends = backends;
        this.copies = copies;
        this.options = options;
        this.environment = environment;
        this.warmups = warmups;
    }

    /** Returns whether the server has a rate limiter, so that the resources of groups matter. */
    boolean isRateLimited() {
        return environment.rateLimiter().isLimiting();
    }

    /**
     * Loads a version.
     *
     * @return the version, ready to serve, owned by the caller
     * @throws BackendException if the backend is missing or fails
     * @throws InferenceException if the completed configuration is wrong
     */
    public ServedModel load(PreparedModel prepared, long version) {
        checkStarts(prepared);
        return options.observer()
                .observe(
                        prepared.directory().name(),
                        prepared.config().getBackend(),
                        ModelLoadOptions.LoadObserver.Work.LOAD,
                        () -> loadObserved(prepared, version));
    }

    private ServedModel loadObserved(PreparedModel prepared, long version) {
        long started = environment.clocks().nanoTime().getAsLong();
        BackendLease lease = backends.acquire(prepared.config().getBackend());
        try (Rollback rollback = new Rollback()) {
            rollback.add(lease::close);
            VersionFiles files = copies.of(prepared.directory());
            rollback.add(files::close);
            LoadScope scope = LoadScope.of(prepared, version, lease, files, environment.supervision(), starts.waits());
            LeasedModel.Resources resources = new LeasedModel.Resources(
                    lease,
                    files,
                    scope.executor(),
                    holders.add(
                            new ModelRef(prepared.directory().key(), version),
                            prepared.directory().name(),
                            prepared.config().getBackend(),
                            lease.callbacks()));
            rollback.commit(); // the resources close both
            rollback.add(resources::closeFailed);
            try (KeptObjects _ = scope.kept()) { // closed before what else the load has
                return load(scope, resources, started, rollback);
            } catch (BackendException e) {
                report(prepared, MisspeltParameters.ofFailure(scope.parameters())); // may be the reason
                throw lease.notice().isEmpty()
                        ? e
                        : new BackendException(e.code(), e.getMessage() + " (" + lease.notice() + ")", e);
            } finally {
                scope.required().end();
            }
        }
    }

    /** Loads a version by a backend. The resources belong to the version if it is loaded. */
    private ServedModel load(LoadScope scope, LeasedModel.Resources resources, long started, Rollback rollback) {
        PreparedModel prepared = scope.prepared();
        long version = scope.version();
        BackendLease lease = resources.lease();
        ModelExecutor executor = resources.executor();
        Backend backend = lease.backend();
        ModelConfig config = VersionCompletion.complete(options, scope);
        report(prepared, ConfigCompletion.replaced(prepared.config(), config, version));
        LoadIdentity identity = environment.cache().isEmpty()
                ? LoadIdentity.NONE
                : new FileIdentity(prepared, config, lease.digest(), version); // before the backend reads the files
        BatchingStrategyFactory.refuseNative(
                config, prepared.directory().path(), prepared.directory().versionDirectory(version));
        List<InstancePlan> plans = InstancePlan.of(config);
        executor.place(
                options.instances().hostPolicies().placement(plans.getFirst().hostPolicy()));
        VersionContext context = VersionCompletion.context(
                options,
                scope,
                config,
                ModelSettingsReader.settings(config, version),
                plans.stream().map(InstancePlan::device).collect(toList()),
                Optional.of(lease.callbacks().isolate(clients.apply(resources.responses()))));
        Map<String, List<String>> labels = LabelFiles.read(prepared.directory().path(), config);
        Model model = backend.load(context);
        LeasedModel leased = new LeasedModel(
                model,
                resources,
                instance -> watch.beginClose(prepared.directory().name(), version, instance),
                start -> starts.goesOn(prepared.directory().key(), start));
        rollback.commit(); // the model closes its executor, and releases the lease
        rollback.add(leased::close);
        Optional<BatchingStrategy> strategy = BatchingStrategyFactory.of(model, config);
        strategy.ifPresent(created -> rollback.add(created::close));
        List<BackendInstance> instances = new InstanceFactory(
                        watched(leased, prepared, version), backend.traits(), options.instances())
                .create(plans, rollback);
        starts.await(instances);
        scope.kept().close();
        scope.parameters().endRecording();
        report(prepared, MisspeltParameters.of(scope.parameters()));
        reportSettings(prepared.config().getBackend(), lease.misspeltSettings());
        Parts parts = new Parts(
                config,
                context.settings(),
                traitsOf(config, resources, model),
                labels,
                leased,
                strategy,
                SequencePlanReader.plan(
                        config, context.settings(), prepared.directory().path()),
                new Load(prepared.directory().key(), started, identity, scope.required()));
        try (WarmupSamples warmup = warmup(prepared, config, context.settings(), model)) {
            ServedModel served = serve(parts, instances, warmup.samples(), rollback);
            rollback.commit();
            return served;
        }
    }

    /** Passes warnings about a model to its log and to the receiver of the options. */
    private void report(PreparedModel prepared, List<String> warnings) {
        String model = prepared.config().getName();
        System.Logger log = new PluginLogger(prepared.config().getBackend(), model);
        for (String warning : warnings) {
            log.log(System.Logger.Level.WARNING, warning);
            options.warnings().accept(model, warning);
        }
    }

    /** Passes warnings about a backend, whichever its models, to its log and to the receiver of the options. */
    private void reportSettings(String backend, List<String> warnings) {
        System.Logger log = new PluginLogger(backend);
        for (String warning : warnings) {
            log.log(System.Logger.Level.WARNING, warning);
            options.warnings().accept("", warning);
        }
    }

    /**
     * Creates instances of a model, and reports creations that take too long. The thread of the load is watched
     * already, so only creations on other threads are reported here.
     */
    private InstanceFactory.Creation watched(LeasedModel model, PreparedModel prepared, long version) {
        Thread loading = Thread.currentThread(); // which is watched already
        return plan -> {
            if (loading.equals(Thread.currentThread())) {
                return newInstance(model, plan);
            }
            try (ModelLoadWatch.Step _ =
                    watch.begin(prepared.directory().name(), OptionalLong.of(version), "newInstance")) {
                return newInstance(model, plan);
            }
        };
    }

    /** Creates one instance of a model, with the memory of the server. */
    BackendInstance newInstance(LeasedModel model, InstancePlan plan) {
        return model.newInstance(plan, environment.memory(), options.instances());
    }

    /** Refuses new instances of a model while starts of earlier ones go on in vain. */
    void checkStarts(PreparedModel prepared) {
        starts.check(prepared.directory().key());
    }

    /** Waits until new instances of a version have started. */
    void awaitStarted(List<BackendInstance> instances) {
        starts.await(instances);
    }

    /** Reads the warm-up of a version, to be closed when its instances are warm. */
    WarmupSamples warmup(PreparedModel prepared, ModelConfig config, ModelSettings settings, Model model) {
        List<NamedTensor> first = config.getModelWarmupCount() == 0
                ? List.of()
                : SequencePlanReader.plan(config, settings, prepared.directory().path())
                        .map(plan -> plan.firstInputs(settings.batches()))
                        .orElse(List.of());
        return WarmupSamples.read(
                config,
                RequestChecks.forModel(settings, model),
                settings,
                first,
                prepared.directory().path(),
                environment.memory(),
                new SplittableRandom());
    }

    /** Completes the configuration of a version from its files, and checks it. */
    ModelConfig complete(PreparedModel prepared, long version, BackendLease lease) {
        VersionFiles files = copies.of(prepared.directory());
        return VersionCompletion.complete(
                options, prepared, version, lease, files, environment.supervision(), starts.waits());
    }

    private static ExecutionTraits traitsOf(ModelConfig config, LeasedModel.Resources resources, Model model) {
        BackendLease lease = resources.lease();
        BackendTraits traits = lease.backend().traits();
        BackendTraits.Execution execution = model.execution().orElse(traits.execution());
        return new ExecutionTraits(
                        config.getBackend(),
                        new AcceptedMemory(traits.clientMemory(), traits.places()),
                        execution == BackendTraits.Execution.SHORT,
                        execution == BackendTraits.Execution.DEVICE_BLOCKING)
                .withMaxDeferred(traits.maxDeferred())
                .withLastingThreads(traits.lastingThreads())
                .with(lease.callbacks())
                .with(resources.responses()::forgotten);
    }

    /** Components of a version without its instances. */
    private record Parts(
            ModelConfig config,
            ModelSettings settings,
            ExecutionTraits traits,
            Map<String, List<String>> labels,
            LeasedModel model,
            Optional<BatchingStrategy> strategy,
            Optional<SequencePlan> sequences,
            Load load) {}

    /**
     * The start and the files of a version's load.
     *
     * @param startNanos when the load began
     */
    private record Load(String key, long startNanos, LoadIdentity identity, RequiredModels required) {}

    /** Passes the active instances to a scheduler. The passive instances stay with the model. */
    private ServedModel serve(
            Parts parts, List<BackendInstance> instances, List<Warmup.Sample> warmup, Rollback rollback) {
        checkActive(
                parts.settings().name(),
                instances.stream().map(BackendInstance::plan).toList());
        BatchingPolicy batching = ModelSettingsReader.batchingPolicy(parts.config());
        ReportedMemory memory = new ReportedMemory(
                parts.model().model().memoryUsage(),
                environment.clocks().nanoTime().getAsLong());
        ModelPlan plan = new ModelPlan(parts.settings(), batching)
                .with(parts.traits())
                .withStrategy(parts.strategy())
                .with(warmup)
                .with(options.limits())
                .withSequences(parts.sequences());
        SchedulerEnvironment modelEnvironment = environment
                .with(ModelSettingsReader.cache(
                        parts.config(), environment.cache(), parts.load().identity()))
                .with(ModelSettingsReader.supervision(parts.config(), environment.supervision()));
        List<Instance> active = instances.stream()
                .filter(instance -> !instance.isPassive())
                .map(BackendInstance::scheduled)
                .toList();
        ModelMeter meter = meters.of(parts.load().key(), parts.settings().version());
        // From here on the scheduler closes the instances that run, and the strategy, also when its start fails.
        rollback.commit();
        rollback.add(parts.model()::close);
        instances.stream().filter(BackendInstance::isPassive).forEach(instance -> rollback.add(instance::close));
        ModelScheduler scheduler = ModelScheduler.start(plan, active, modelEnvironment, meter);
        rollback.add(scheduler::close);
        awaitWarm(scheduler, parts.settings().name());
        Classifier classifier = new Classifier(parts.settings(), parts.labels(), environment.memory());
        Duration loadTime = Duration.ofNanos(
                environment.clocks().nanoTime().getAsLong() - parts.load().startNanos());
        return new ServedModel(
                parts.config(),
                parts.settings(),
                scheduler,
                Optional.of(parts.model()),
                instances,
                classifier,
                new ServedModel.LoadFigures(
                        memory,
                        loadTime,
                        ModelKey.namespace(parts.load().key()),
                        parts.load().identity(),
                        parts.load().required()));
    }

    /** Refuses a model of which no instance would run. */
    static void checkActive(String model, List<InstancePlan> plans) {
        if (plans.stream().allMatch(InstancePlan::passive)) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "model '" + model + "' has passive instances only (expected: one that runs)");
        }
    }

    private void awaitWarm(ModelScheduler scheduler, String model) {
        try {
            warmups.await(scheduler);
        } catch (InterruptedException e) {
            scheduler.close(); // first of all: instances may still read the samples
            Thread.currentThread().interrupt();
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE, "model '" + model + "': its load was interrupted during the warm-up");
        }
    }
}
