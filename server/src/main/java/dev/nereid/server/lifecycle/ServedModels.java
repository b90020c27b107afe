package dev.nereid.server.lifecycle;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.Quoted;
import dev.nereid.api.statistics.ExecutorUse;
import dev.nereid.api.statistics.HeldResponses;
import dev.nereid.api.statistics.LoadCounts;
import dev.nereid.api.statistics.ModelFaults;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.OverdueControl;
import dev.nereid.api.statistics.OverdueExecutions;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.repository.ModelKey;
import dev.nereid.scheduler.client.RunningExecution;
import dev.nereid.scheduler.queue.SequenceUse;
import dev.nereid.server.client.ClientModels;
import dev.nereid.server.instance.ExecutingInstance;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import inference.ModelConfig;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Catalog of the loaded models of a server. Lock-free for readers: a map of immutable entries, each replaced as a
 * whole, by one control task at a time for each model.
 */
public final class ServedModels implements ModelCatalog, ClientModels {
    private final ConcurrentHashMap<String, ModelEntry> entries = new ConcurrentHashMap<>();
    private final ModelNames names = new ModelNames(entries);
    private final OnDemandModels onDemand = new OnDemandModels();
    private final LiveGenerations live;
    private final ModelLoadWatch loads;
    private final MemoryRefresh memory;

    /** Set when the models are being closed with the server. */
    private volatile boolean ended;

    /**
     * Creates an empty catalog.
     *
     * @param loads reports overdue loads
     * @param memory refreshes the memory of models before their statistics are read
     */
    public ServedModels(LiveGenerations live, ModelLoadWatch loads, MemoryRefresh memory) {
        this.live = live;
        this.loads = loads;
        this.memory = memory;
    }

    /** Returns the models that are loaded on demand. */
    public OnDemandModels onDemand() {
        return onDemand;
    }

    /**
     * Finds the version that serves a request, and acquires a lease on it if it is loaded.
     *
     * @param model the model as the client names it
     * @return the generation of the version, to be {@linkplain Generation#release released} by the caller, or the
     *     model if it has to be loaded first
     * @throws InferenceException if there is no such version, or it is not ready
     */
    public Resolution acquire(ModelRef model) {
        while (true) {
            ModelEntry entry = entry(model);
            Generation generation = entry.find(model);
            if (generation != null && generation.acquire()) {
                return generation;
            }
            OnDemandModel unloaded = findOnDemand(model);
            if (unloaded != null) {
                return unloaded;
            }
            if (generation == null) {
                throw entry.refusal(model);
            }
            // It drains since it was read, so that the entry has another one or none by now.
        }
    }

    /**
     * Finds the version that serves a request, as {@link #acquire(ModelRef)} does, or a replaced generation of it: a
     * request follows its sequence to the generation on which that began.
     *
     * @return the generation, to be {@linkplain Generation#release released} by the caller, or the model if it has to be
     *     loaded first
     * @throws InferenceException if there is no such version, or it is not ready
     */
    public Resolution acquire(InferRequest request) {
        Generation followed = live.hasFollowed() ? following(request) : null;
        if (followed != null) {
            return followed;
        }
        Resolution found = acquire(request.model());
        if (live.hasFollowed() && found instanceof Generation generation) {
            return ofSequence(request, generation);
        }
        return found;
    }

    /** Returns another generation than the one found, if that took the place of the other one only just now. */
    private Generation ofSequence(InferRequest request, Generation found) {
        Optional<Sequence> sequence = request.options().sequence();
        if (sequence.isEmpty() || sequence.get().start()) {
            return found;
        }
        Sequence.Id id = sequence.get().id();
        Generation followed = found.model().scheduler().hasSequence(id) ? null : following(request);
        if (followed == null) {
            return found;
        }
        found.release();
        return followed;
    }

    /**
     * Returns whether a request starts a sequence while sequences of earlier generations of some model continue.
     *
     * @return whether {@link #startedAgain} is to be called when the request was accepted
     */
    public boolean startsOverReload(InferRequest request) {
        return live.hasFollowed()
                && request.options().sequence().map(Sequence::start).orElse(false);
    }

    /** Ends the sequence of an accepted request on the earlier generations of a version: it has started again. */
    public void startedAgain(InferRequest request, Generation generation) {
        live.startedAgain(request.options().sequence().orElseThrow().id(), generation);
    }

    private @Nullable Generation following(InferRequest request) {
        Optional<Sequence> sequence = request.options().sequence();
        if (sequence.isEmpty() || sequence.get().start()) {
            return null;
        }
        Sequence.Id id = sequence.get().id();
        ModelEntry entry = known(request.model().name());
        Generation serving = entry == null ? null : entry.find(request.model());
        boolean startedAgain = serving != null && serving.model().scheduler().hasSequence(id);
        return startedAgain ? null : live.following(key(request.model().name()), request.model(), id);
    }

    private @Nullable OnDemandModel findOnDemand(ModelRef model) {
        OnDemandModel found = onDemand.find(model.name());
        if (found == null) {
            found = names.key(model.name()).map(onDemand::find).orElse(null);
        }
        return found != null && found.has(model) ? found : null;
    }

    /** Reads a loaded version, or else one that is loaded on demand. */
    private <T> T read(ModelRef model, Function<ServedModel, T> loaded, Function<OnDemandModel, T> unloaded) {
        ModelEntry entry = entry(model);
        Generation generation = entry.find(model);
        if (generation != null) {
            return loaded.apply(generation.model());
        }
        OnDemandModel found = findOnDemand(model);
        if (found == null) {
            throw entry.refusal(model);
        }
        return unloaded.apply(found);
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        ModelEntry entry = entry(model);
        Generation generation = entry.find(model);
        if (generation != null) {
            return entry.describe(model, generation.model());
        }
        return read(model, ServedModel::description, found -> found.describe(model));
    }

    @Override
    public ModelConfig config(ModelRef model) {
        return read(model, ServedModel::config, found -> found.config(model));
    }

    /**
     * Returns the labels of an output of a loaded version.
     *
     * @return the labels in the order of its elements; empty if it has none, or the version is not loaded
     */
    public List<String> labels(ModelRef model, String output) {
        ModelEntry entry = known(model.name());
        Generation generation = entry == null ? null : entry.find(model);
        return generation == null ? List.of() : generation.model().labels(output);
    }

    @Override
    public String configJson(ModelRef model) {
        return read(model, ServedModel::configJson, found -> found.configJson(model));
    }

    @Override
    public boolean isReady(ModelRef model) {
        return isReady(model, served -> {
            CompletableFuture<Readiness> check = served.checkReady().toCompletableFuture();
            return check.isDone() ? check.join().isReady() : served.isReady();
        });
    }

    /**
     * Returns whether a version leaves the server ready: as {@link #isReady(ModelRef)}, but instances that are unavailable
     * for a while count as ready.
     *
     * @return whether nothing of it has failed
     */
    public boolean leavesReady(ModelRef model) {
        return isReady(model, ServedModel::isReady);
    }

    @Override
    public CompletionStage<Readiness> checkReady(ModelRef model) {
        try {
            ModelEntry entry = entry(model);
            if (entry.find(model) == null && findOnDemand(model) != null) {
                return CompletableFuture.completedStage(entry.isFailed(model) ? Readiness.NOT_READY : Readiness.READY);
            }
            return entry.resolve(model)
                    .model()
                    .checkReady()
                    .thenCompose(result -> result.isReady() || entry.equals(known(model.name()))
                            ? CompletableFuture.completedStage(result)
                            : checkReady(model)); // it is closed because another one took its place
        } catch (InferenceException e) {
            return CompletableFuture.failedStage(e);
        }
    }

    private boolean isReady(ModelRef model, Predicate<ServedModel> isReady) {
        while (true) {
            ModelEntry entry = entry(model);
            if (entry.find(model) == null && findOnDemand(model) != null) {
                return !entry.isFailed(model);
            }
            if (isReady.test(entry.resolve(model).model())) {
                return true;
            }
            if (entry.equals(known(model.name()))) { // it is not closed because another one took its place
                return false;
            }
        }
    }

    @Override
    public List<ModelStatus> index() {
        return indexByKey().values().stream().flatMap(List::stream).toList();
    }

    /**
     * Returns the states of all versions.
     *
     * @return the states by the keys of the models, in the order of names, then of namespaces; may be changed
     */
    public NavigableMap<String, List<ModelStatus>> indexByKey() {
        NavigableMap<String, List<ModelStatus>> index = new TreeMap<>(ModelKey.ORDER);
        for (String key : entries.keySet()) {
            List<ModelStatus> statuses = readCurrent(key, List.of(), ModelEntry::statuses);
            if (!statuses.isEmpty()) {
                index.put(
                        key,
                        statuses.stream()
                                .map(status -> withOverdueReason(key, status))
                                .toList());
            }
        }
        return index;
    }

    /**
     * Reads the state of a model's generations. A generation of an entry that was replaced meanwhile may be closed, and
     * report that it does not serve. Then the new entry is read.
     *
     * @param absent the result if nothing is known of the model
     */
    private <T> T readCurrent(String key, T absent, Function<ModelEntry, T> reading) {
        while (true) {
            ModelEntry entry = entries.get(key);
            if (entry == null) {
                return absent;
            }
            T result = reading.apply(entry);
            if (entry.equals(entries.get(key))) {
                return result;
            }
        }
    }

    /** Adds to the status of a version that is loaded or unloaded whether that takes too long. */
    private ModelStatus withOverdueReason(String key, ModelStatus status) {
        return switch (status.state()) {
            case LOADING -> withReason(status, loads.overdueReason(status.name(), status.version(), false));
            case UNLOADING -> withReason(status, unloadReason(key, status));
            case READY, UNAVAILABLE, UNKNOWN -> status;
        };
    }

    /** Returns why a version is not unloaded yet; empty if nothing is known. */
    private String unloadReason(String key, ModelStatus status) {
        String held = status.version().isPresent()
                ? live.heldReason(key, status.version().getAsLong())
                : "";
        return held.isEmpty() ? loads.overdueReason(status.name(), status.version(), true) : held;
    }

    private static ModelStatus withReason(ModelStatus status, String reason) {
        return new ModelStatus(status.name(), status.version(), status.state(), reason);
    }

    @Override
    public List<OverdueExecutions> overdueExecutions() {
        List<OverdueExecutions> all = new ArrayList<>();
        for (ModelEntry entry : sorted().values()) {
            entry.loaded().forEach(model -> all.add(model.overdue()));
        }
        return List.copyOf(all);
    }

    @Override
    public List<OverdueControl> overdueControl() {
        return loads.overdue();
    }

    @Override
    public List<ModelFaults> faults() {
        List<ModelFaults> all = new ArrayList<>();
        for (ModelEntry entry : sorted().values()) {
            entry.loaded().forEach(model -> all.add(model.faults()));
        }
        return List.copyOf(all);
    }

    @Override
    public List<ExecutorUse> executors() {
        List<ExecutorUse> all = new ArrayList<>();
        for (ModelEntry entry : sorted().values()) {
            entry.loaded().forEach(model -> model.executor().ifPresent(all::add));
        }
        return List.copyOf(all);
    }

    @Override
    public List<HeldResponses> heldResponses() {
        Map<ModelRef, HeldResponses> all = new TreeMap<>(
                Comparator.comparing(ModelRef::name, ModelKey.ORDER).thenComparingLong(ModelRef::version));
        for (Generation generation : live.all()) {
            ModelRef version = new ModelRef(generation.key(), generation.model().version());
            generation.model().heldResponses().ifPresent(held -> all.merge(version, held, HeldResponses::plus));
        }
        return List.copyOf(all.values());
    }

    /** Returns model, version and instance that a thread executes; empty if it executes nothing. */
    public Optional<ExecutingInstance> instanceOn(Thread thread) {
        return live.all().stream()
                .flatMap(generation -> generation.model().instanceOn(thread).stream())
                .findFirst();
    }

    @Override
    public Optional<RunningExecution> executionOn(Thread thread) {
        return live.all().stream()
                .flatMap(generation -> generation.model().scheduler().instances().stream())
                .flatMap(running -> running.executionOn(thread).stream())
                .findFirst();
    }

    /** Counts the requests in flight above 0 by name and version of the model, as in {@code resnet/1}, for logs. */
    public SortedMap<String, Integer> inFlight() {
        SortedMap<String, Integer> counts = new TreeMap<>();
        for (Generation generation : live.all()) {
            ServedModel model = generation.model();
            int count = model.inFlight();
            if (count > 0) {
                counts.merge(model.settings().name() + "/" + model.version(), count, Integer::sum);
            }
        }
        return counts;
    }

    /** Abandons the execution on a thread, which will not return from it, if there is one. */
    public void abandonExecutionOn(Thread thread) {
        live.all()
                .forEach(generation -> generation
                        .model()
                        .scheduler()
                        .instances()
                        .ifPresent(running -> running.loseExecutionOn(thread)));
    }

    @Override
    public List<SequenceStatistics> sequences() {
        List<SequenceStatistics> all = new ArrayList<>();
        sorted().forEach((key, entry) -> {
            for (ServedModel model : entry.loaded()) {
                List<SequenceUse> uses = live.sequenceUses(key, model.version());
                if (!uses.isEmpty()) {
                    all.add(model.sequences(uses));
                }
            }
        });
        return List.copyOf(all);
    }

    @Override
    public List<LoadCounts> loadCounts() {
        return live.events().counts();
    }

    @Override
    public List<ModelStatistics> statistics() {
        List<ModelStatistics> all = new ArrayList<>();
        sorted().forEach((key, entry) -> all.addAll(statistics(key, entry)));
        return List.copyOf(all);
    }

    @Override
    public List<ModelStatistics> statistics(ModelRef model) {
        String key = key(model.name());
        ModelEntry entry = entries.get(key);
        List<ModelStatistics> versions = entry == null ? List.of() : statistics(key, entry);
        if (versions.isEmpty()) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT, "requested model '" + Quoted.text(model.name()) + "' is not available");
        }
        if (model.version() == ModelRef.LATEST) {
            return versions;
        }
        for (ModelStatistics version : versions) {
            if (version.model().version() == model.version()) {
                return List.of(version);
            }
        }
        throw new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                "requested model version is not available for model '" + Quoted.text(model.name()) + "'");
    }

    private NavigableMap<String, ModelEntry> sorted() {
        NavigableMap<String, ModelEntry> sorted = new TreeMap<>(ModelKey.ORDER);
        sorted.putAll(entries);
        return sorted;
    }

    private List<ModelStatistics> statistics(String key, ModelEntry entry) {
        entry.ready().values().forEach(memory::request);
        OnDemandModel unloaded = onDemand.find(key);
        if (unloaded == null) {
            return entry.loaded().stream().map(ServedModel::statistics).toList();
        }
        NavigableMap<Long, ModelStatistics> versions = new TreeMap<>();
        unloaded.versions().forEach((number, version) -> versions.put(number, version.statistics()));
        entry.loaded().forEach(model -> versions.put(model.version(), model.statistics()));
        return List.copyOf(versions.values());
    }

    /**
     * Returns whether every version of every model serves or was unloaded on purpose. The backend of a model reports
     * whether it serves. A model that is loaded on demand counts only if it is pinned.
     */
    public boolean allReady() {
        return entries.keySet().stream()
                .filter(this::isAlwaysLoaded)
                .allMatch(name -> readCurrent(name, true, ModelEntry::isReady));
    }

    private boolean isAlwaysLoaded(String key) {
        OnDemandModel model = onDemand.find(key);
        return model == null || model.isPinned();
    }

    /** Lists the models and versions that could not be loaded, by name, with their reasons. */
    public List<ModelStatus> failures() {
        return index().stream()
                .filter(status -> status.state() == ModelStatus.State.UNAVAILABLE)
                .filter(status -> !status.isUnloaded())
                .toList();
    }

    /** Returns the entry of a model by its {@linkplain ModelKey key}; empty if the model is unknown. */
    public Optional<ModelEntry> find(String key) {
        return Optional.ofNullable(entries.get(key));
    }

    /** Returns a copy of the keys of the models. */
    public Set<String> keys() {
        return Set.copyOf(entries.keySet());
    }

    @Override
    public boolean isKnown(String key) {
        return entries.containsKey(key);
    }

    @Override
    public BooleanSupplier currentStep(String model) {
        return loads.currentStep(model);
    }

    @Override
    public String key(String name) {
        return entries.containsKey(name) ? name : names.key(name).orElse(name);
    }

    /** Returns a copy of a name's keys in all namespaces; without namespaces the name itself, if it is a model's. */
    public Set<String> keys(String name) {
        Set<String> keys = names.keys(name);
        if (entries.containsKey(name)) {
            keys.add(name);
        }
        return keys;
    }

    /**
     * Changes the entry of a model in one step.
     *
     * @param key the model's {@linkplain ModelKey key}
     * @param change returns the new entry for the present one, which is {@code null} for an unknown model; {@code null}
     *     to forget the model; has no side effects
     */
    public void update(String key, Function<@Nullable ModelEntry, @Nullable ModelEntry> change) {
        entries.compute(key, (_, entry) -> change.apply(entry));
        names.changed(key);
    }

    /** Makes the server not ready from now on. Models that still complete their requests are excepted. */
    public void end() {
        ended = true;
    }

    private @Nullable ModelEntry known(String name) {
        ModelEntry entry = entries.get(name);
        return entry == null ? names.key(name).map(entries::get).orElse(null) : entry;
    }

    private ModelEntry entry(ModelRef model) {
        ModelEntry entry = known(model.name());
        if (ended && (entry == null || !entry.serves())) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
        }
        if (entry == null) {
            throw ModelEntry.notFound(model);
        }
        return entry;
    }
}
