package dev.nereid.server.control;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.plugin.BackendRegistry;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.ModelRepository;
import dev.nereid.repository.files.FileCopies;
import dev.nereid.repository.files.PrivateDirectory;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.server.client.ModelClients;
import dev.nereid.server.demand.DemandModels;
import dev.nereid.server.demand.ModelActions;
import dev.nereid.server.dependency.ModelDependencies;
import dev.nereid.server.ensemble.DependentEnsembles;
import dev.nereid.server.ensemble.EnsembleLoader;
import dev.nereid.server.instance.InstanceStarts;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.MemoryRefresh;
import dev.nereid.server.lifecycle.MeterRegistry;
import dev.nereid.server.lifecycle.ModelDescriber;
import dev.nereid.server.lifecycle.ModelLoadOptions;
import dev.nereid.server.lifecycle.ModelLoadWatch;
import dev.nereid.server.lifecycle.ModelPreparation;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.server.lifecycle.VersionLoader;
import dev.nereid.server.lifecycle.VersionUpdater;
import dev.nereid.server.memory.MemoryThreads;
import dev.nereid.server.memory.NativeHeapTrimmer;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ModelControlOptions;
import dev.nereid.server.warmup.RunningWarmups;
import dev.nereid.spi.ModelClient;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import java.util.function.LongSupplier;

/**
 * Loads, serves and unloads the models of a repository, as the control mode says. Owns the models that it loads.
 * Started and closed once by the server; safe for use by any thread in between.
 *
 * <p>This class connects the parts; each of them does one thing.
 */
public final class ModelLifecycle {
    private final ServedModels models;
    private final ModelClients clients;
    private final LiveGenerations live;
    private final RunningWarmups warmups = new RunningWarmups();
    private final ModelLoadWatch watch;
    private final ControlTasks tasks;
    private final LoadThreads threads;
    private final MemoryThreads memory;
    private final InstanceUpdates updates;
    private final StartupModels startup;
    private final Optional<DemandModels> demand;
    private final ModelControl control;
    private final ModelShutdown shutdown;
    private final PrivateDirectory overrides;
    private final NativeHeapTrimmer nativeHeap;
    private final long startNanos = System.nanoTime();
    private final Optional<RepositoryPoller> poller;

    /**
     * Creates the life cycle of a repository's models.
     *
     * @param repository where the models lie
     * @param files the copies of their files for backends
     * @param options how they are loaded
     * @param controlOptions when they are loaded and unloaded
     * @param environment memory and clock of their schedulers
     * @param workDirectory holds the files that clients send with loads; created when it is needed
     */
    public ModelLifecycle(
            ModelRepository repository,
            BackendRegistry backends,
            FileCopies files,
            ModelLoadOptions options,
            ModelControlOptions controlOptions,
            SchedulerEnvironment environment,
            Path workDirectory) {
        FatalErrorHandler fatalErrors = environment.supervision().fatalErrors();
        LongSupplier nanoTime = environment.clocks().nanoTime();
        watch = new ModelLoadWatch(environment.supervision(), nanoTime);
        nativeHeap =
                NativeHeapTrimmer.ofTheProcess(nanoTime, environment.clocks().timer());
        live = new LiveGenerations(fatalErrors, nativeHeap::freed);
        memory = new MemoryThreads();
        MemoryRefresh refresh = new MemoryRefresh(live, memory, nanoTime, fatalErrors);
        models = new ServedModels(live, watch, refresh);
        ModelDependencies dependencies = new ModelDependencies();
        clients = new ModelClients(models, dependencies);
        tasks = new ControlTasks(fatalErrors);
        threads = new LoadThreads(options.loadThreads(), nativeHeap::freed);
        MeterRegistry meters = new MeterRegistry(environment.clocks().wallClock());
        ModelPreparation preparation = new ModelPreparation(
                backends, options, environment.rateLimiter().isLimiting(), watch);
        VersionLoader loader = new VersionLoader(
                backends,
                files,
                options,
                environment,
                warmups,
                watch,
                meters,
                clients::of,
                live.holders(),
                new InstanceStarts(threads));
        EnsembleLoader ensembles = new EnsembleLoader(models, options, environment, meters, dependencies);
        VersionUpdater updater = new VersionUpdater(backends, loader, options, warmups);
        Optional<ModelDescriber> describer = controlOptions.mode() == ModelControlMode.DEMAND
                ? Optional.of(new ModelDescriber(
                        backends,
                        files,
                        options,
                        meters,
                        environment.cache().isPresent(),
                        controlOptions::isStartupModel,
                        environment.supervision(),
                        threads))
                : Optional.empty();
        CatalogUpdater catalog = new CatalogUpdater(
                models,
                live,
                meters,
                describer,
                controlOptions.mode() == ModelControlMode.NONE || controlOptions.mode() == ModelControlMode.POLL);
        LoadFailures failures = new LoadFailures(fatalErrors);
        overrides = new PrivateDirectory(workDirectory, "overrides-");
        files.exempt(overrides::contains);
        ModelSources sources =
                new ModelSources(repository, preparation, new OverrideWriter(overrides, OverrideWriter.MAX_BYTES));
        ModelLoader modelLoader = new ModelLoader(
                backends,
                preparation,
                new LoadAttempts(loader, ensembles, live, watch, failures, nanoTime, controlOptions.loadRetries()),
                updater,
                catalog,
                live,
                failures,
                new DependentEnsembles(models, dependencies, ensembles));
        LoadTasks loads = new LoadTasks(tasks, sources, modelLoader, catalog, live, threads, dependencies);
        updates = new InstanceUpdates(repository, preparation, updater, models, catalog);
        NamedModels named = new NamedModels(
                loads,
                sources,
                tasks,
                models,
                repository.hasNamespaces(),
                new RepositoryIndex(models, Optional.of(repository)));
        demand = describer.map(_ -> demand(
                controlOptions,
                environment,
                new DemandActions(loads, tasks, catalog, live, models.onDemand(), refresh),
                catalog));
        demand.ifPresent(ensembles::follow);
        Optional<DemandModelControl> demandControl = describer.map(descriptions -> new DemandModelControl(
                named,
                new ModelDescriptions(tasks, sources, preparation, descriptions, catalog, threads, failures),
                models.onDemand(),
                demand.orElseThrow()));
        Function<String, CompletionStage<Void>> load =
                model -> ModelKey.namespace(model).isEmpty() ? named.load(model, false) : loads.load(model);
        startup = new StartupModels(
                repository,
                demandControl
                        .<Function<String, CompletionStage<Void>>>map(control -> control::begin)
                        .orElse(load),
                loads::unload,
                catalog,
                controlOptions,
                options.loadThreads());
        threads.follow(startup);
        control = switch (controlOptions.mode()) {
            case EXPLICIT -> named;
            case DEMAND -> demandControl.orElseThrow();
            case NONE, POLL -> RefusedModelControl.ofRepository(new RepositoryIndex(models, Optional.empty()));
        };
        poller = controlOptions.mode() == ModelControlMode.POLL
                ? Optional.of(new RepositoryPoller(
                        new FingerprintScan(repository, preparation)::read,
                        modelLoader::readPlugins,
                        loads,
                        new PollState(controlOptions.pollInterval(), controlOptions.stabilityWindow()),
                        environment.clocks(),
                        scan -> Thread.ofVirtual().name("poll").start(scan)))
                : Optional.empty();
        shutdown = new ModelShutdown(models, live, catalog, clients.callers(), watch, nanoTime);
    }

    private DemandModels demand(
            ModelControlOptions controlOptions,
            SchedulerEnvironment environment,
            ModelActions actions,
            CatalogUpdater catalog) {
        DemandModels created = new DemandModels(
                controlOptions.demand(),
                actions,
                environment,
                task -> Thread.ofVirtual().name("demand").start(task));
        catalog.follow(created);
        live.follow(created);
        return created;
    }

    /**
     * Begins to load the models of the start. Called once.
     *
     * @throws InferenceException if the repository cannot be read; nothing is loaded then
     */
    public void start() {
        startup.begin();
        poller.ifPresent(started -> started.start(models.keys()));
    }

    /**
     * Waits until every model of the start is loaded or has failed.
     *
     * @param needsAll whether to wait for the models of remote repositories too, however long their listing takes
     */
    public void awaitLoaded(boolean needsAll) throws InterruptedException {
        startup.await(needsAll);
    }

    /** Returns whether remote repositories are still listed at the start, so that not all models are known. */
    public boolean isListing() {
        return startup.isListing();
    }

    /** Returns whether a model of the start is still loading, or not all of them are known. */
    public boolean isLoading() {
        return startup.isLoading();
    }

    /** Returns the catalog of the models. */
    public ServedModels models() {
        return models;
    }

    /** Returns the clients by which models send requests to each other. */
    public ModelClients clients() {
        return clients;
    }

    /** Creates the client of the program that embeds the server. Called once, by a thread of the program. */
    public ModelClient programClient() {
        return clients.ofProgram(live.holders());
    }

    /** Describes the objects that plugins have forgotten to release, in the order of discovery. */
    public List<String> forgotten() {
        return live.holders().forgotten();
    }

    /** Describes, by model, the senders and leases that plugins have not ended, although no client waits for them. */
    public List<String> unended() {
        return live.all().stream()
                .map(Generation::unended)
                .filter(sentence -> !sentence.isEmpty())
                .toList();
    }

    /** Returns whether models send requests to others, for which {@link #close} waits first. */
    public boolean hasCallers() {
        return shutdown.hasCallers();
    }

    /** Returns the object that loads models for requests; empty in other control modes. */
    public Optional<DemandModels> demand() {
        return demand;
    }

    /** Returns the control for clients. */
    public ModelControl control() {
        return control;
    }

    /** Lists the models and versions that could not be loaded, by name, with their reasons. */
    public List<ModelStatus> failures() {
        return startup.failures(models.failures());
    }

    /**
     * Reads the configuration of a model again, and replaces the model's instances by the configured ones. Each of its
     * versions is updated while the model serves: new instances are created, warmed up and started first, then the
     * instances that are no longer configured stop taking requests; they complete the requests that they have, and are
     * then closed. Instances that differ in nothing but the names of their groups stay. Blocks meanwhile.
     *
     * @param model the model's name
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if the configuration is wrong, or
     *     differs in more than {@code instance_group} and {@code version_policy}, or selects other versions than are
     *     served, or if executions of the model's backend block their device: then the model has to be loaded again;
     *     any code with which a new instance failed. In each case the version that failed, and the versions after it,
     *     stay as they were
     * @throws InterruptedException if the thread is interrupted meanwhile; the update continues
     */
    public void updateInstances(String model) throws InterruptedException {
        String key = models.key(model);
        ControlTasks.await(tasks.submit(key, () -> {
            List<Runnable> waits = new ArrayList<>();
            threads.run(() -> waits.addAll(updates.update(key)));
            waits.forEach(Runnable::run);
        }));
    }

    /**
     * Begins to stop: nothing more is loaded or unloaded, and the delay of schedulers ends, if there is one. Models and
     * their sequences serve on. Never blocks. Later calls do nothing.
     */
    public void beginExit() {
        poller.ifPresent(RepositoryPoller::close);
        tasks.end();
        demand.ifPresent(DemandModels::end);
        live.end();
        live.all().forEach(generation -> generation.model().beginExit());
    }

    /** Ends all sequences, as soon as they are idle. Called after {@link #beginExit}; never blocks. */
    public void endSequences() {
        live.endSequences();
        live.all().forEach(generation -> generation.model().endSequences());
    }

    /**
     * Ends loading and updates, and closes every model. A present execution of a warm-up ends before, and every model
     * completes its requests. Blocks meanwhile. Called once.
     *
     * <p>When the budget is exceeded, the remaining requests are completed without their executions: no client waits
     * for a response that will not come.
     *
     * @param budget how long this may take; the notifications after it may take a moment more
     * @return whether everything was closed in time; the rest keeps its resources
     */
    public boolean close(Duration budget) {
        beginExit();
        endSequences();
        nativeHeap.close(); // the process ends, or frees little from here on
        warmups.end();
        threads.end();
        memory.end();
        boolean closed = shutdown.close(tasks, budget);
        demand.ifPresent(DemandModels::close);
        watch.close();
        if (closed) {
            overrides.close();
        }
        return closed;
    }

    /**
     * Returns when a model was last used.
     *
     * @param nowNanos the time, on the scale of {@link System#nanoTime()}
     * @return the given time while a model has a request or is loaded; else the time of the last request, counted from
     *     its arrival, or load; that of the start if no model is loaded
     */
    public long lastUse(long nowNanos) {
        if (threads.areUsed()) {
            return nowNanos;
        }
        long last = startNanos;
        for (Generation generation : live.all()) {
            if (!generation.isIdle()) {
                return nowNanos;
            }
            long used = generation.usedNanos();
            last = used - last > 0 ? used : last;
        }
        return last;
    }
}
