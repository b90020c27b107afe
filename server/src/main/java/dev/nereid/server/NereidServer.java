package dev.nereid.server;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.Cancellation;
import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.Refusals;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.ServerMetadata;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.api.statistics.DemandStatistics;
import dev.nereid.plugin.BackendStatus;
import dev.nereid.server.control.RefusedModelControl;
import dev.nereid.server.demand.DemandModels;
import dev.nereid.server.health.Health;
import dev.nereid.server.instance.ExecutingInstance;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.server.options.LifecycleOptions;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.server.options.SupervisionOptions;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelClient;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.SortedMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongConsumer;
import java.util.stream.Collectors;

/**
 * An inference server inside a Java program, without sockets. Safe for use by any thread; only {@link #close},
 * {@link #awaitModels}, {@link #updateInstances} and {@link dev.nereid.spi.ModelRequest#sendAndWait} block.
 *
 * {@snippet :
 * ServerOptions options = ServerOptions.of(Path.of("models")).withPlugins(Path.of("plugins"));
 * try (NereidServer server = NereidServer.start(options);
 *         ModelResponse response = server.client()
 *                 .request("twice")
 *                 .input("INPUT", Shape.of(1, 3), 1f, 2.5f, -3f)
 *                 .sendAndWait()) {
 *     float[] doubled = response.requireOutput("OUTPUT").floats();
 * }
 * }
 *
 * <p>It owns plugins, models and memory. Closing it completes the accepted requests, then closes instances, models,
 * backends and plugins, each once.
 */
public final class NereidServer implements InferenceServer, AutoCloseable {
    /** The reason of a repository that is missing. */
    static final String NO_REPOSITORY =
            "no model repository (expected: an existing directory that may be read); the server"
                    + " loads no models and is not ready until it is started again";

    private enum Phase {
        RUNNING,
        EXITING,
        CLOSED
    }

    private final ServerMetadata metadata;
    private final ServerComponents components;
    private final LifecycleOptions options;
    private final Refusals refusals;
    private final ServedModels models;

    /** The model repositories that did not exist at the start. If there is one, nothing is loaded. */
    private final List<Path> missing;

    private final RequestSubmission submission;
    private final LargeRequestExecutor largeRequests = new LargeRequestExecutor();
    private final AtomicReference<Phase> phase = new AtomicReference<>(Phase.RUNNING);
    private final AtomicBoolean closing = new AtomicBoolean();
    private final ModelClient client;
    private volatile boolean markedNotReady;

    NereidServer(
            ServerMetadata metadata,
            ServerComponents components,
            LifecycleOptions options,
            Refusals refusals,
            List<Path> missing) {
        this.metadata = metadata;
        this.components = components;
        this.options = options;
        this.refusals = refusals;
        this.missing = List.copyOf(missing);
        models = components.lifecycle().models();
        submission = new RequestSubmission(
                models,
                components.lifecycle().demand(),
                components.memory().pool(),
                refusals,
                components.health()::isExhausted);
        components.lifecycle().clients().serve(this);
        client = components.lifecycle().programClient();
    }

    /**
     * Starts a server and waits until every model is loaded or has failed. Blocks meanwhile. If a repository does not
     * exist and the server is not to exit on errors, it loads nothing, is not live and is not ready.
     *
     * @return the server, owned by the caller
     * @throws InferenceException if a repository cannot be read, or if a model cannot be loaded and the server is to
     *     {@linkplain LifecycleOptions#exitOnError exit on errors}; everything was closed again
     * @throws IllegalArgumentException if a repository does not exist, and the server is to exit on errors
     * @throws InterruptedException if the thread is interrupted meanwhile; everything was closed again
     */
    public static NereidServer start(ServerOptions options) throws InterruptedException {
        NereidServer server = startLoading(options);
        boolean started = false;
        try {
            server.awaitModels();
            started = true;
        } catch (InferenceException e) {
            if (options.lifecycle().exitOnError()) {
                throw e;
            }
            started = true;
        } finally {
            if (!started) {
                server.close();
            }
        }
        return server;
    }

    /**
     * Starts a server and returns while its models are loading. It does so whether the server is to exit on errors or
     * not. {@link #awaitModels} waits for the end of the loads.
     *
     * @return the server, live but not ready yet, owned by the caller
     * @throws InferenceException if a repository cannot be read
     * @throws IllegalArgumentException if a repository does not exist, and the server is to exit on errors
     */
    public static NereidServer startLoading(ServerOptions options) {
        return new ServerFactory(options).start();
    }

    /**
     * Returns the client by which the program sends requests to models, and loads and unloads them. Actions on the
     * stages of its requests run on separate threads, with the context class loader of the thread that started the
     * server; its observers are called on threads of the server, and never block.
     *
     * <p>Each response is closed before the server: until then its model is not unloaded. One that nothing refers to any more
     * is released, and logged.
     *
     * @return the client, always the same; only the program waits for its requests
     */
    public ModelClient client() {
        return client;
    }

    @Override
    public Cancellation infer(InferRequest request, ResponseObserver observer) {
        long arrivedNanos = System.nanoTime();
        return largeRequests.accepts(request)
                ? largeRequests.submit(request, observer, new LargeSubmission(submission, arrivedNanos))
                : submission.begin(request, observer, arrivedNanos);
    }

    @Override
    public ModelCatalog models() {
        return models;
    }

    @Override
    public ModelControl control() {
        if (isFailed()) {
            return RefusedModelControl.ofServer("Server not ready");
        }
        return components.health().isExhausted()
                ? RefusedModelControl.ofServer(Health.EXHAUSTED)
                : components.lifecycle().control();
    }

    @Override
    public SharedMemory sharedMemory() {
        return components.memory().shared();
    }

    @Override
    public TensorMemory memory() {
        return components.memory().pool();
    }

    @Override
    public Refusals refusals() {
        return refusals;
    }

    @Override
    public Optional<DemandStatistics> demand() {
        return components.lifecycle().demand().map(DemandModels::statistics);
    }

    @Override
    public ServerMetadata metadata() {
        return metadata;
    }

    /**
     * Returns whether the server runs. It does from the end of its start until it stops, or until a {@linkplain
     * #fatalErrors() fatal error} is noticed, or until a thread has ended that serves as long as the server does. After a
     * fatal error it refuses requests, loads and unloads, and can be closed: a program that embeds it should close it and
     * start another, or end. Requests in progress may be lost.
     */
    @Override
    public boolean isLive() {
        return phase.get() == Phase.RUNNING
                && !isFailed()
                && components.health().isGood();
    }

    /** Returns whether the server could not be initialized, so that it has no models. */
    private boolean isFailed() {
        return !missing.isEmpty();
    }

    /**
     * Returns the handler to which a program reports fatal errors that it catches. An example is an error on one of the
     * program's threads. The server reports errors on its threads already.
     *
     * @return the handler, always the same; passes errors on to the handler of {@link SupervisionOptions}
     */
    public FatalErrorHandler fatalErrors() {
        return components.health();
    }

    /**
     * Runs a check once a second until the server is closed.
     *
     * @param check receives the time on the scale of {@link System#nanoTime()}, on one thread at a time; must be short
     *     and never block
     */
    public void everySecond(LongConsumer check) {
        components.watchdog().add(check::accept);
    }

    /**
     * Finds the instance that a thread executes.
     *
     * @param thread any thread, also one that submits requests
     * @return model, version and instance; empty if the thread executes nothing
     */
    public Optional<ExecutingInstance> instanceOn(Thread thread) {
        return models.instanceOn(thread);
    }

    /**
     * Abandons the execution on a thread, if there is one. The thread ends the process and will not return: its
     * requests are completed, and {@link #close} does not wait for it.
     *
     * @param thread any thread, also one that submits requests
     */
    public void abandonExecutionOn(Thread thread) {
        models.abandonExecutionOn(thread);
    }

    /**
     * Counts the requests in flight of all models, for logs.
     *
     * @return the counts above 0 by name and version of the model, as in {@code resnet/1}
     */
    public SortedMap<String, Integer> requestsInFlight() {
        return models.inFlight();
    }

    @Override
    public boolean isExiting() {
        return phase.get() != Phase.RUNNING;
    }

    @Override
    public boolean isReady() {
        return isLive()
                && !markedNotReady
                && (options.strictReadiness()
                        ? !components.lifecycle().isListing() && models.allReady()
                        : !components.lifecycle().isLoading());
    }

    /**
     * Returns the states of plugins and backends.
     *
     * @return usable backends first, then broken plugins
     */
    public List<BackendStatus> backends() {
        return components.plugins().backends().statuses();
    }

    /**
     * Returns the repository agents and the storages of repositories.
     *
     * @return agents by name, then storages by scheme
     */
    public List<PluginExtension> extensions() {
        return components.plugins().extensions();
    }

    /**
     * Lists the models and repositories that the start could not load, whether {@link #models} shows them or not.
     *
     * @return models and versions with their reasons, models of the start that are in no repository, and repositories
     *     that cannot be reached
     */
    public List<ModelStatus> failures() {
        if (isFailed()) {
            return missing.stream()
                    .map(path -> new ModelStatus(
                            path.toString(), OptionalLong.empty(), ModelStatus.State.UNAVAILABLE, NO_REPOSITORY))
                    .toList();
        }
        return components.lifecycle().failures();
    }

    /**
     * Waits until every model is loaded or has failed. Needed only after {@link #startLoading}.
     *
     * @throws InferenceException {@link ErrorCode#INTERNAL} with all names and reasons if a model could not be loaded;
     *     the server continues to serve the others
     */
    public void awaitModels() throws InterruptedException {
        if (!isFailed()) {
            components.lifecycle().awaitLoaded(options.exitOnError());
        }
        List<ModelStatus> failures = failures();
        if (!failures.isEmpty()) {
            throw new InferenceException(
                    ErrorCode.INTERNAL,
                    failures.stream()
                            .map(NereidServer::describe)
                            .collect(Collectors.joining("\n  ", "failed to load all models:\n  ", "")));
        }
    }

    /**
     * Replaces the instances of a model by the instances of its present configuration while it serves. For programs
     * that changed {@code instance_group} in the model's {@code config.pbtxt}. New instances are created, warmed up and
     * started first; then the instances that are no longer configured stop taking requests. They complete the requests
     * that they have, and each is closed with the last of its responses. Instances stay if their groups differ in name
     * alone. Blocks until the new instances serve, and the others are closed, which it awaits for a minute at most; an
     * instance with sequences, which ends with them, is not awaited.
     *
     * @param model the model's name
     * @throws InferenceException {@link ErrorCode#NOT_FOUND} if there is no such model; {@link ErrorCode#UNAVAILABLE}
     *     if it is not ready, or the server has begun to exit; {@link ErrorCode#INVALID_ARGUMENT} if the configuration
     *     is wrong, or differs in more than {@code instance_group} and {@code version_policy}, or selects other
     *     versions, or if executions of the model's backend block their device: then the model has to be loaded again.
     *     Any code with which a new instance fails. The versions that could not be updated stay as they were
     * @throws InterruptedException if the thread is interrupted meanwhile; the update continues
     */
    public void updateInstances(String model) throws InterruptedException {
        requireNonNull(model, "model");
        if (phase.get() != Phase.RUNNING || isFailed()) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
        }
        components.lifecycle().updateInstances(model);
    }

    /**
     * Makes the server not ready from now on, while it continues to serve. For programs that wait for load balancers to
     * notice before they call {@link #beginExit}.
     */
    public void markNotReady() {
        markedNotReady = true;
    }

    /**
     * Begins to exit. From now on the server is not live and not ready, but still accepts requests. For programs that
     * close their front ends before the server. {@link #close} has to be called nevertheless.
     */
    public void beginExit() {
        phase.compareAndSet(Phase.RUNNING, Phase.EXITING);
        components.lifecycle().beginExit();
    }

    /**
     * Ends sequences as soon as they are idle, and refuses requests to models with sequences. For programs with front
     * ends that refuse requests, after {@link #beginExit}. Sequences in the backlog get the slots of sequences that
     * cannot go on. Never blocks. Later calls do nothing.
     */
    public void endSequences() {
        components.lifecycle().endSequences();
    }

    /**
     * Stops accepting requests, completes the accepted ones, and closes everything. Later calls do nothing.
     *
     * @throws InferenceException as {@link #closeWithin} does, with the exit timeout as the budget
     */
    @Override
    public void close() {
        closeWithin(options.exitTimeout());
    }

    /**
     * Stops accepting requests, completes the accepted ones, and closes everything. Later calls do nothing.
     *
     * @throws InferenceException {@link ErrorCode#INTERNAL} if that took longer. The remaining requests were completed
     *     with {@link ErrorCode#UNAVAILABLE}, executing ones after their backends were notified; resources still in use
     *     are not closed, since closing them under a running execution could bring down the process
     */
    public void closeWithin(Duration budget) {
        if (!closing.compareAndSet(false, true)) {
            return;
        }
        beginExit();
        if (components.lifecycle().hasCallers()) {
            submission.closeToClients();
        }
        boolean drained = components.lifecycle().close(budget);
        submission.close();
        phase.set(Phase.CLOSED);
        largeRequests.close();
        if (!drained) {
            throw new InferenceException(ErrorCode.INTERNAL, "Exit timeout expired. Exiting immediately.");
        }
        components.close();
    }

    /**
     * Describes the objects that plugins and the program have forgotten to release, such as responses of models. The
     * server has released them.
     *
     * @return a sentence as in the log for each, in the order of discovery, about 100 at most; also after the close
     */
    public List<String> forgotten() {
        return components.lifecycle().forgotten();
    }

    /**
     * Describes the objects that plugins have not ended: senders without a client, and leases on inputs. An unload
     * waits for them; the close waits for a while. A plugin may be about to end them.
     *
     * @return a sentence for each model that waits for some, in no order; also after the close
     */
    public List<String> unended() {
        return components.lifecycle().unended();
    }

    private static String describe(ModelStatus failure) {
        String version =
                failure.version().isPresent() ? " version " + failure.version().getAsLong() : "";
        return failure.name() + version + ": " + failure.reason();
    }

    /** Submits a large request, which the server received at a time, after its check. */
    private record LargeSubmission(RequestSubmission submission, long arrivedNanos)
            implements LargeRequestExecutor.Submission {
        @Override
        public Cancellation submit(InferRequest request, ResponseObserver observer) {
            return submission.begin(request, observer, arrivedNanos);
        }

        @Override
        public void cancelled(InferRequest request) {
            submission.cancelled(request, arrivedNanos);
        }
    }
}
