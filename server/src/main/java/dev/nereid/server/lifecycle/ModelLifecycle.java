package dev.nereid.server.lifecycle;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelStatus;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.server.plugin.BackendRegistry;
import dev.nereid.server.repository.ModelDirectory;
import dev.nereid.server.repository.ModelRepository;
import dev.nereid.server.repository.RepositoryScan;
import dev.nereid.server.warmup.RunningWarmups;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads, updates and closes the models of a repository. Owns what it loads. Started and closed once by the server; safe
 * for use by any thread in between.
 *
 * <p>The versions of a model are loaded together or not at all: if one of them fails, those already loaded are closed
 * again. A model that fails is reported by name and reason and never prevents another from being served. Each model's
 * entry in the catalog is changed by the one load thread that loads it, and, after the load threads have ended, by
 * {@link #close}.
 */
public final class ModelLifecycle {
    private static final Logger LOG = LoggerFactory.getLogger(ModelLifecycle.class);

    /** The time to notify backends and clients after the exit timeout. */
    private static final Duration ABANDON_TIMEOUT = Duration.ofSeconds(1);

    private final ModelRepository repository;
    private final ModelPreparation preparation;
    private final VersionLoader loader;
    private final LongSupplier nanoTime;
    private final RunningWarmups warmups = new RunningWarmups();
    private final ModelLoadWatch watch;
    private final FatalErrorHandler fatalErrors;
    private final ServedModels models;
    private final ModelUpdates updates;
    private final ExecutorService loadThreads;
    private final List<Future<?>> loads = new ArrayList<>();
    private volatile boolean closing;

    /**
     * Creates the life cycle of a repository's models.
     *
     * @param repository where the models lie
     * @param backends the backends that load them
     * @param options how they are loaded
     * @param environment memory and clock of their schedulers
     */
    public ModelLifecycle(
            ModelRepository repository,
            BackendRegistry backends,
            ModelLoadOptions options,
            SchedulerEnvironment environment) {
        this.repository = repository;
        watch = new ModelLoadWatch(
                environment.supervision(), environment.clocks().nanoTime());
        fatalErrors = environment.supervision().fatalErrors();
        models = new ServedModels(watch);
        preparation = new ModelPreparation(
                backends, options, environment.rateLimiter().isLimiting());
        loader = new VersionLoader(backends, options, environment, warmups, watch);
        updates = new ModelUpdates(
                repository, preparation, new VersionUpdater(backends, loader, options, warmups), models, fatalErrors);
        nanoTime = environment.clocks().nanoTime();
        loadThreads = Executors.newFixedThreadPool(
                options.loadThreads(), Thread.ofPlatform().name("load/", 0).factory());
    }

    /**
     * Scans the repository and begins to load every model in it. Called once.
     *
     * @throws InferenceException if the repository cannot be read; nothing is loaded then
     */
    public void start() {
        try {
            RepositoryScan scan = repository.scan();
            scan.duplicates().forEach(this::refuseDuplicate);
            for (ModelDirectory directory : scan.models()) {
                models.put(directory.name(), ModelEntry.of(directory.name(), new VersionState.Loading()));
            }
            for (ModelDirectory directory : scan.models()) {
                loads.add(loadThreads.submit(() -> load(directory)));
            }
        } finally {
            loadThreads.shutdown(); // its threads end with the last load
        }
    }

    /**
     * Waits until every model is loaded or has failed.
     *
     * @throws InterruptedException if the thread is interrupted meanwhile
     */
    public void awaitLoaded() throws InterruptedException {
        for (Future<?> load : loads) {
            try {
                load.get();
            } catch (ExecutionException e) {
                fatalErrors.check(e);
                LOG.atError().setCause(e.getCause()).log("load thread died");
            }
        }
    }

    /**
     * Returns the catalog of the models.
     *
     * @return the catalog, always the same
     */
    public ServedModels models() {
        return models;
    }

    /**
     * Lists the models and versions that could not be loaded.
     *
     * @return models and versions with their reasons, by name
     */
    public List<ModelStatus> failures() {
        return models.failures();
    }

    /**
     * Replaces the instances of a model by those of its configuration, read anew. Each of its versions is updated while
     * the model serves: new instances are created, warmed up and started first, then the instances that are no longer
     * configured stop taking requests; they complete the requests that they have, and are closed by themselves.
     * Instances that differ in nothing but the names of their groups stay. Blocks meanwhile; one update runs at a time.
     *
     * @param model the model's name
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if the configuration is wrong, or
     *     differs in more than {@code instance_group} and {@code version_policy}, or selects other versions than are
     *     served, or if executions of the model's backend block their device: then the model has to be loaded again;
     *     any code with which a new instance failed. In each case the version that failed, and those after it, stay as
     *     they were
     * @throws InterruptedException if the thread is interrupted meanwhile; the update continues
     */
    public void updateInstances(String model) throws InterruptedException {
        updates.updateInstances(model);
    }

    /** Ends the delay of schedulers, if there is one. A stop has begun, and no more requests may come. Never blocks. */
    public void endDelay() {
        models.ready().forEach(ServedModel::endDelay);
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
        boolean closed = closeWithin(budget);
        watch.close();
        if (!closed) {
            abandonReady();
        }
        return closed;
    }

    /** Abandons the requests of every model, on threads of their own. The notified backends and observers may block. */
    private void abandonReady() {
        ExecutorService abandoners = Executors.newThreadPerTaskExecutor(
                Thread.ofVirtual().name("abandon/", 0).factory());
        for (ServedModel model : models.ready()) {
            abandoners.execute(model::abandon);
        }
        abandoners.shutdown();
        boolean interrupted = Thread.interrupted(); // which may be why the time is over
        try {
            if (!abandoners.awaitTermination(ABANDON_TIMEOUT.toNanos(), TimeUnit.NANOSECONDS)) {
                LOG.atWarn().log("requests not completed at shutdown: a backend or an observer blocks");
            }
        } catch (InterruptedException e) {
            interrupted = true;
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean closeWithin(Duration budget) {
        long deadline = nanoTime.getAsLong() + budget.toNanos();
        closing = true;
        updates.end();
        warmups.end();
        loadThreads.shutdown();
        try {
            if (!loadThreads.awaitTermination(remaining(deadline), TimeUnit.NANOSECONDS)) {
                return false;
            }
            return updates.awaitEnd(remaining(deadline)) && closeReady(deadline);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private boolean closeReady(long deadline) throws InterruptedException {
        models.end();
        ExecutorService closers = Executors.newThreadPerTaskExecutor(
                Thread.ofVirtual().name("unload/", 0).factory());
        List<Future<?>> closes = new ArrayList<>();
        for (ServedModel model : models.ready()) {
            closes.add(closers.submit(() -> close(model)));
        }
        closers.shutdown();
        for (Future<?> close : closes) {
            try {
                close.get(remaining(deadline), TimeUnit.NANOSECONDS);
            } catch (TimeoutException e) {
                return false;
            } catch (ExecutionException e) {
                fatalErrors.check(e);
                LOG.atError().setCause(e.getCause()).log("model could not be closed");
            }
        }
        return true;
    }

    private void close(ServedModel model) {
        String name = model.config().getName();
        try {
            model.close();
            LOG.atInfo()
                    .addKeyValue("model", name)
                    .addKeyValue("version", model.version())
                    .log("successfully unloaded '{}' version {}", name, model.version());
        } finally {
            models.change(
                    name, entry -> entry.with(model.version(), new VersionState.Unavailable(VersionState.UNLOADED)));
        }
    }

    private long remaining(long deadline) {
        return Math.max(0, deadline - nanoTime.getAsLong());
    }

    private void refuseDuplicate(String name) {
        LOG.atError()
                .addKeyValue("model", name)
                .log("failed to poll model '{}': not unique across all model repositories", name);
        models.put(
                name, ModelEntry.of(name, new VersionState.Unavailable("model appears in two or more repositories")));
    }

    private void load(ModelDirectory directory) {
        String name = directory.name();
        if (closing) {
            models.put(name, ModelEntry.of(name, new VersionState.Unavailable(VersionState.UNLOADED)));
            return;
        }
        InferenceException failure;
        try {
            PreparedModel prepared;
            try (ModelLoadWatch.Step _ = watch.begin(name, OptionalLong.empty(), "prepare")) {
                prepared = preparation.prepare(directory);
            }
            loadVersions(prepared);
            return;
        } catch (InferenceException e) {
            failure = e;
        } catch (RuntimeException | VirtualMachineError e) {
            failure = unexpected(name, e);
        }
        LOG.atError()
                .addKeyValue("model", name)
                .log("Poll failed for model directory '{}': {}", name, failure.publicMessage());
        models.put(name, ModelEntry.of(name, VersionState.Unavailable.of(failure.code(), failure.publicMessage())));
    }

    private void loadVersions(PreparedModel prepared) {
        String name = prepared.directory().name();
        TreeMap<Long, VersionState> states = new TreeMap<>();
        prepared.versions().forEach(version -> states.put(version, new VersionState.Loading()));
        models.put(name, ModelEntry.of(name, states));
        for (long version : prepared.versions()) {
            states.put(version, loadVersion(prepared, version));
        }
        models.put(name, ModelEntry.of(name, allOrNone(states)));
    }

    private VersionState loadVersion(PreparedModel prepared, long version) {
        String name = prepared.directory().name();
        long started = nanoTime.getAsLong();
        LOG.info("loading: {}:{}", name, version);
        InferenceException failure;
        try {
            ServedModel served;
            try (ModelLoadWatch.Step _ = watch.begin(name, OptionalLong.of(version), "load")) {
                served = loader.load(prepared, version);
            }
            LOG.atInfo()
                    .addKeyValue("model", name)
                    .addKeyValue("version", version)
                    .addKeyValue("backend", prepared.config().getBackend())
                    .addKeyValue("elapsedMillis", TimeUnit.NANOSECONDS.toMillis(nanoTime.getAsLong() - started))
                    .log("successfully loaded '{}' version {}", name, version);
            return new VersionState.Ready(served);
        } catch (BackendException e) {
            failure = new InferenceException(e.code(), String.valueOf(e.getMessage()));
        } catch (InferenceException e) {
            failure = e;
        } catch (RuntimeException | VirtualMachineError e) {
            failure = unexpected(name, e); // such as a model that is too large for the heap: others may fit
        }
        var state = VersionState.Unavailable.of(failure.code(), failure.publicMessage());
        LOG.atError()
                .addKeyValue("model", name)
                .addKeyValue("version", version)
                .log("failed to load '{}' version {}: {}", name, version, state.reason());
        return state;
    }

    /** Closes the versions that were loaded if another was not. */
    private static NavigableMap<Long, VersionState> allOrNone(NavigableMap<Long, VersionState> states) {
        List<Long> failed = states.keySet().stream()
                .filter(version -> states.get(version) instanceof VersionState.Unavailable)
                .toList();
        if (!failed.isEmpty()) {
            VersionState.Unavailable unloaded = VersionState.Unavailable.of(
                    ErrorCode.UNAVAILABLE, "not served, since another version of this load failed: " + failed);
            states.reversed().forEach((version, state) -> {
                if (state instanceof VersionState.Ready(ServedModel model)) {
                    model.close();
                }
            });
            states.replaceAll((version, state) -> state instanceof VersionState.Ready ? unloaded : state);
        }
        return states;
    }

    private InferenceException unexpected(String model, Throwable failure) {
        fatalErrors.check(failure);
        LOG.atError().addKeyValue("model", model).setCause(failure).log("load failed unexpectedly");
        return new InferenceException(ErrorCode.INTERNAL, "internal error: " + failure);
    }
}
