package dev.nereid.server.lifecycle;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.statistics.ExecutorUse;
import dev.nereid.api.statistics.HeldResponses;
import dev.nereid.api.statistics.MetricCounters;
import dev.nereid.api.statistics.ModelFaults;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.ModelVersionTags;
import dev.nereid.api.statistics.OverdueExecutions;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.plugin.jar.PluginThreads;
import dev.nereid.repository.ModelKey;
import dev.nereid.scheduler.InstanceControl;
import dev.nereid.scheduler.Scheduler;
import dev.nereid.scheduler.queue.SequenceUse;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.scheduler.statistics.MeterReading;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.server.classification.Classifier;
import dev.nereid.server.classification.ClassifyingObserver;
import dev.nereid.server.dependency.ModelRequirer;
import dev.nereid.server.dependency.ReadinessQuestion;
import dev.nereid.server.dependency.RequiredModels;
import dev.nereid.server.executor.ModelExecutor;
import dev.nereid.server.instance.BackendInstance;
import dev.nereid.server.instance.ExecutingInstance;
import dev.nereid.server.memory.ReportedMemory;
import dev.nereid.server.request.RequestChecks;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import inference.ModelConfig;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;

/**
 * A loaded version of a model, ready to serve. Owns its scheduler, its model and its instances. Immutable: an update of
 * the instances creates another object, which takes over the ownership. Safe for use by any thread.
 */
public final class ServedModel implements AutoCloseable {
    private static final double NANOS_PER_SECOND = 1e9;

    private static final ReadinessQuestion<Boolean> LEAVES_READY = new ReadinessQuestion<>();
    private static final ReadinessQuestion<CompletionStage<ModelCatalog.Readiness>> CAN_SERVE =
            new ReadinessQuestion<>();

    /**
     * Memory and duration of a load.
     *
     * @param memory the memory that the backend reports for the model, refreshed while it is loaded
     * @param namespace the namespace of the model; empty without namespaces
     */
    record LoadFigures(
            ReportedMemory memory, Duration time, String namespace, LoadIdentity identity, RequiredModels required) {}

    private final ModelConfig config;
    private final ModelSettings settings;
    private final ModelMetadata description;
    private final RequestChecks checks;
    private final Classifier classifier;
    private final Scheduler scheduler;

    /** The backend's model; empty for an ensemble. */
    private final Optional<LeasedModel> leased;

    private final List<BackendInstance> instances;
    private final boolean hasGpuInstances;
    private final LoadFigures load;

    ServedModel(
            ModelConfig config,
            ModelSettings settings,
            Scheduler scheduler,
            Optional<LeasedModel> leased,
            List<BackendInstance> instances,
            Classifier classifier,
            LoadFigures load) {
        this.config = config;
        this.settings = settings;
        this.scheduler = scheduler;
        this.leased = leased;
        this.instances = List.copyOf(instances);
        this.hasGpuInstances = hasGpuInstances(instances);
        this.classifier = classifier;
        this.load = load;
        description = ModelSettingsReader.description(config, List.of(settings.version()));
        checks = leased.map(owner -> RequestChecks.forModel(settings, owner.model()))
                .orElseGet(() -> RequestChecks.forModel(settings, Map.of()));
    }

    /**
     * Creates an ensemble, which has no backend and no instances.
     *
     * @param settings the configuration as schedulers see it
     * @param scheduler executes its requests; owned and closed by the model
     * @param classifier finds the classes of its outputs
     * @param identity the identity of its files and of the models of its steps
     */
    public static ServedModel ofEnsemble(
            String key,
            ModelConfig config,
            ModelSettings settings,
            Scheduler scheduler,
            Classifier classifier,
            Duration time,
            LoadIdentity identity) {
        ReportedMemory memory = new ReportedMemory(List.of(), System.nanoTime());
        RequiredModels none = new RequiredModels(ModelRequirer.NONE); // an ensemble has steps instead
        LoadFigures load = new LoadFigures(memory, time, ModelKey.namespace(key), identity, none);
        return new ServedModel(config, settings, scheduler, Optional.empty(), List.of(), classifier, load);
    }

    /** Returns whether it is an ensemble, so that requests to other models execute its requests. */
    public boolean isEnsemble() {
        return leased.isEmpty();
    }

    /**
     * Returns the same model with other instances, in place of this one. This one must not be closed any more.
     *
     * @param instances its instances; its scheduler runs all but the passive ones
     */
    ServedModel with(ModelConfig changed, List<BackendInstance> instances) {
        ModelSettings read = ModelSettingsReader.settings(changed, version());
        return new ServedModel(changed, read, scheduler, leased, instances, classifier, load);
    }

    public Scheduler scheduler() {
        return scheduler;
    }

    /** Returns the backend's model, which creates the instances; empty for an ensemble. */
    Optional<LeasedModel> leased() {
        return leased;
    }

    /** Returns the instances in the order of the configuration, passive ones included. */
    public List<BackendInstance> instances() {
        return instances;
    }

    /**
     * Checks a request against the model and takes over its memory if it passes.
     *
     * @param arrivedNanos the time at which the server received it
     * @return the request as the model's scheduler takes it
     * @throws InferenceException if the request is wrong; its memory still belongs to the caller
     */
    public CheckedRequest check(InferRequest request, long arrivedNanos) {
        CheckedRequest checked = checks.check(request, arrivedNanos);
        classifier.check(request.outputs());
        return checked;
    }

    /**
     * Queues a request that was checked.
     *
     * @param request the request; its memory belongs to the model from now on
     * @param observer notified of the outcome in any case
     * @return the handle by which the caller cancels the request
     */
    public Cancellation submit(CheckedRequest request, ResponseObserver observer) {
        RequestOutputs outputs = request.outputs();
        if (!outputs.isClassified()) {
            return scheduler.submit(request, observer);
        }
        ClassifyingObserver classifying = new ClassifyingObserver(classifier, outputs.requested(), observer);
        return classifying.attach(scheduler.submit(request, classifying));
    }

    /** Returns the configuration, completed and with all defaults. */
    public ModelConfig config() {
        return config;
    }

    /** Returns the configuration as schedulers see it. */
    public ModelSettings settings() {
        return settings;
    }

    /** Returns the labels of an output, in the order of its elements; empty if it has none. */
    List<String> labels(String output) {
        return classifier.labels(output);
    }

    String configJson() {
        return settings.json();
    }

    /** Returns the identity of the content that it was loaded from. An update of the instances keeps it. */
    public LoadIdentity identity() {
        return load.identity();
    }

    /** Returns the memory that the backend reports. An update of the instances keeps it. */
    ReportedMemory memory() {
        return load.memory();
    }

    /**
     * Returns whether inputs and outputs have to lie on the host: a cache reads them, no instance is on a GPU, or that
     * may hold for a step of this ensemble.
     */
    public boolean needsHostTensors() {
        return scheduler.isCached() || isEnsemble() || !hasGpuInstances;
    }

    private static boolean hasGpuInstances(List<BackendInstance> instances) {
        return instances.stream().anyMatch(instance -> instance.plan().device().kind() == Device.Kind.GPU);
    }

    /** Returns the description of this version for the time when it is not loaded. */
    OnDemandModel.Version onDemand(ModelMeter meter) {
        return new OnDemandModel.Version(
                config, configJson(), description, tags(), meter, scheduler.isCached(), required());
    }

    public long version() {
        return settings.version();
    }

    /** Describes this version alone. */
    ModelMetadata description() {
        return description;
    }

    ModelMetadata description(List<Long> versions) {
        return ModelSettingsReader.description(config, versions);
    }

    /** Returns the statistics of this version since it was loaded. */
    ModelStatistics statistics() {
        MeterReading read = scheduler.statistics();
        return new ModelStatistics(
                tags(),
                read.executions(),
                read.inferences(),
                read.responses(),
                load.memory().latest(),
                new MetricCounters(
                        read.failures(),
                        read.micros(),
                        scheduler.isCached(),
                        scheduler.waiting(),
                        load.time().toNanos() / NANOS_PER_SECOND,
                        read.inputCopies(),
                        read.gpus()));
    }

    private ModelVersionTags tags() {
        return tags(config, settings.version(), load.namespace());
    }

    /** Returns the labels of a version. Two models with one name differ in their namespaces. */
    static ModelVersionTags tags(ModelConfig config, long version, String namespace) {
        Map<String, String> tags = new HashMap<>(config.getMetricTagsMap());
        if (!namespace.isEmpty()) {
            tags.put("namespace", namespace);
        }
        return new ModelVersionTags(config.getName(), version, tags);
    }

    /** Returns whether it leaves the server ready. */
    boolean isReady() {
        return LEAVES_READY.ask(
                this,
                () -> scheduler.isReady()
                        && mayServe()
                        && load.required().failed().isEmpty());
    }

    /** Checks whether it can serve. Never blocks; the stage completes within seconds, on any thread. */
    CompletionStage<ModelCatalog.Readiness> checkReady() {
        if (!mayServe()) {
            return CompletableFuture.completedStage(ModelCatalog.Readiness.NOT_READY);
        }
        return CAN_SERVE.ask(
                this,
                () -> scheduler
                        .checkReady()
                        .thenCombine(
                                load.required().checkReady(),
                                (own, unready) -> unready.isEmpty() || !own.isReady()
                                        ? own
                                        : ModelCatalog.Readiness.notReady(
                                                ErrorCode.UNAVAILABLE, unreadyModels(unready))));
    }

    private boolean mayServe() {
        return !threads().tooMany();
    }

    /** Returns the problems that keep it from being ready, in one line; empty for none. */
    String problems() {
        return Stream.of(
                        scheduler.problems(),
                        threads().problem(),
                        unreadyModels(load.required().failed()))
                .filter(problem -> !problem.isEmpty())
                .findFirst()
                .orElse("");
    }

    private static String unreadyModels(List<String> unready) {
        return unready.isEmpty() ? "" : "required models that are not ready: " + String.join(", ", unready);
    }

    /** Returns the names of the models that its backend requires; empty for an ensemble, which has steps instead. */
    public Set<String> required() {
        return load.required().names();
    }

    private PluginThreads threads() {
        return leased.map(owner -> owner.resources().lease().threads()).orElse(PluginThreads.NONE);
    }

    /** Returns the state in the repository index. A version with no instances left is not ready. */
    ModelStatus.State state() {
        return scheduler.isServing() ? ModelStatus.State.READY : ModelStatus.State.UNAVAILABLE;
    }

    Optional<ExecutingInstance> instanceOn(Thread thread) {
        return scheduler
                .instances()
                .flatMap(running -> running.instanceOn(thread))
                .map(instance -> new ExecutingInstance(settings.name(), settings.version(), instance));
    }

    /** Returns whether requests wait, are executed, or have open responses. */
    public boolean hasRequests() {
        return inFlight() > 0;
    }

    /** Returns whether any request is not completed. One that moves between threads at this moment may be missed. */
    boolean isWorking() {
        return scheduler.isWorking();
    }

    /** Returns the threads that execute at this moment, by the names of their instances. */
    public Map<String, Thread> executing() {
        return scheduler.instances().map(InstanceControl::executing).orElse(Map.of());
    }

    /** Returns how many requests wait, are executed, or have open responses. */
    public int inFlight() {
        return scheduler.inFlight();
    }

    OverdueExecutions overdue() {
        return scheduler
                .instances()
                .map(running -> new OverdueExecutions(tags(), running.overdue(), running.overdueTotal()))
                .orElseGet(() -> new OverdueExecutions(tags(), 0, 0));
    }

    ModelFaults faults() {
        PluginThreads threads = threads();
        long outOfMemory =
                scheduler.instances().map(InstanceControl::outOfMemoryTotal).orElse(0L);
        long changed =
                scheduler.instances().map(InstanceControl::changedOutputsTotal).orElse(0L);
        return new ModelFaults(tags(), outOfMemory, changed, threads.plugin(), threads.count());
    }

    /** Returns the threads for tasks of its backend; empty for a model that had none. */
    Optional<ExecutorUse> executor() {
        return leased.map(owner -> owner.resources().executor())
                .filter(ModelExecutor::isUsed)
                .map(executor -> new ExecutorUse(tags(), executor.threads(), executor.waiting()));
    }

    /** Returns the responses of other models that it holds; empty for an ensemble. */
    Optional<ResponseHolder> responses() {
        return leased.map(LeasedModel::responses);
    }

    /** Returns how many senders and leases on inputs its plugin has not ended, and may have forgotten. */
    public long openHandles() {
        return scheduler
                .instances()
                .map(running -> running.openSenders() + running.openLeases())
                .orElse(0L);
    }

    /** Names the objects that its plugin has to end before the version can be unloaded; empty if there are none. */
    public String unendedReason() {
        long senders =
                scheduler.instances().map(InstanceControl::forsakenSenders).orElse(0);
        long leases = scheduler.instances().map(InstanceControl::openLeases).orElse(0L);
        String ofPlugin = " of plugin '" + config.getBackend() + "'";
        String ofSenders = senders == 0 ? "" : "waits for senders that are not ended: " + senders + ofPlugin;
        String ofLeases = leases == 0 ? "" : "waits for leases on inputs that are not ended: " + leases + ofPlugin;
        return ofSenders.isEmpty() || ofLeases.isEmpty() ? ofSenders + ofLeases : ofSenders + "; " + ofLeases;
    }

    /** Returns how many responses of other models it holds; empty if it has sent no request to any. */
    Optional<HeldResponses> heldResponses() {
        return responses().filter(ResponseHolder::isUsed).map(holder -> new HeldResponses(tags(), holder.size()));
    }

    /** Returns how many sequences this version has; empty for a model without sequences. */
    Optional<SequenceUse> sequenceUse() {
        return scheduler.instances().flatMap(InstanceControl::sequenceUse);
    }

    /** Returns the sequences of this version, by the uses of its generations, at least one. */
    SequenceStatistics sequences(List<SequenceUse> uses) {
        return new SequenceStatistics(
                tags(),
                uses.stream().mapToLong(SequenceUse::live).sum(),
                uses.stream().mapToLong(SequenceUse::backlog).sum(),
                uses.stream().mapToLong(SequenceUse::slotsUsed).sum(),
                uses.stream().mapToLong(SequenceUse::slots).sum(),
                uses.stream().mapToLong(use -> use.states().bytes()).sum(),
                uses.getFirst().states().copies(),
                uses.getFirst().ended());
    }

    /**
     * Expects the end of the server. Instances take waiting requests, whatever the configured delay of schedulers.
     * Requests are accepted as before. Never blocks.
     */
    public void beginExit() {
        scheduler.instances().ifPresent(InstanceControl::endDelay);
    }

    /**
     * Ends sequences as soon as they are idle, and starts none. Sequences in the backlog would wait for slots of
     * sequences that cannot continue, since front ends refuse their requests. Never blocks.
     */
    public void endSequences() {
        if (sequenceUse().isPresent()) {
            drain();
        }
    }

    /** Refuses requests that wait while no instance is available: the version is to be unloaded. Never blocks. */
    public void expectUnload() {
        scheduler.expectUnload();
    }

    /** Refuses requests from now on, and executes all accepted requests. Never blocks. */
    public void drain() {
        scheduler.drain();
    }

    /**
     * Waits for so long at most until no request is in flight; returns whether none is. More may come, before a {@link
     * #drain}.
     */
    public boolean awaitIdle(long nanos) throws InterruptedException {
        return scheduler.awaitIdle(nanos);
    }

    /**
     * Completes all requests that have no terminal response, executing or not, and refuses new ones. {@link #close}
     * waits for the backend.
     */
    public void abandon() {
        scheduler.abandon();
    }

    /** Refuses new requests, completes the accepted ones, and frees everything. Blocks meanwhile. Called once. */
    @Override
    public void close() {
        scheduler.close();
        instances.reversed().stream().filter(BackendInstance::isPassive).forEach(BackendInstance::close);
        leased.ifPresent(LeasedModel::close);
    }
}
