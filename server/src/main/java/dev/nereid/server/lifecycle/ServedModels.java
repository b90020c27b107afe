package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.Quoted;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.OverdueExecutions;
import dev.nereid.server.instance.ExecutingInstance;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;

/**
 * Catalog of the loaded models of a server. Lock-free for readers: a map of immutable entries, each replaced as a
 * whole; changed by {@link ModelLifecycle} alone.
 */
public final class ServedModels implements ModelCatalog {
    private final ConcurrentHashMap<String, ModelEntry> entries = new ConcurrentHashMap<>();

    /** Whether the models are being closed with the server. */
    private volatile boolean ended;

    private final ModelLoadWatch loads;

    /**
     * Creates an empty catalog.
     *
     * @param loads reports overdue loads
     */
    ServedModels(ModelLoadWatch loads) {
        this.loads = loads;
    }

    /**
     * Finds the version that serves a request.
     *
     * @param model the model as the client names it
     * @return the version
     * @throws InferenceException if there is no such version, or it is not ready
     */
    public ServedModel resolve(ModelRef model) {
        return entry(model).resolve(model);
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        return entry(model).describe(model);
    }

    @Override
    public ModelConfig config(ModelRef model) {
        return resolve(model).config();
    }

    @Override
    public String configJson(ModelRef model) {
        return resolve(model).configJson();
    }

    @Override
    public boolean isReady(ModelRef model) {
        return resolve(model).isReady();
    }

    @Override
    public List<ModelStatus> index() {
        List<ModelStatus> index = new ArrayList<>();
        new TreeMap<>(entries).values().forEach(entry -> index.addAll(entry.statuses()));
        index.replaceAll(this::withOverdueReason);
        return List.copyOf(index);
    }

    /** Adds to the status of a version that is loaded whether that takes too long. */
    private ModelStatus withOverdueReason(ModelStatus status) {
        return status.state() == ModelStatus.State.LOADING
                ? new ModelStatus(
                        status.name(),
                        status.version(),
                        status.state(),
                        loads.overdueReason(status.name(), status.version()))
                : status;
    }

    @Override
    public List<OverdueExecutions> overdueExecutions() {
        List<OverdueExecutions> all = new ArrayList<>();
        for (ModelEntry entry : new TreeMap<>(entries).values()) {
            ready(entry).forEach(model -> all.add(model.overdue()));
        }
        return List.copyOf(all);
    }

    /**
     * Finds the instance that a thread executes.
     *
     * @param thread any thread
     * @return model, version and instance; empty if the thread executes nothing
     */
    public Optional<ExecutingInstance> instanceOn(Thread thread) {
        return ready().stream()
                .flatMap(model -> model.instanceOn(thread).stream())
                .findFirst();
    }

    /**
     * Gives up the execution that a thread is in, if it is in one.
     *
     * @param thread a thread that will not return from it
     */
    public void abandonExecutionOn(Thread thread) {
        ready().forEach(model -> model.scheduler().instances().ifPresent(running -> running.loseExecutionOn(thread)));
    }

    @Override
    public List<ModelStatistics> statistics() {
        List<ModelStatistics> all = new ArrayList<>();
        new TreeMap<>(entries).values().forEach(entry -> all.addAll(entry.statistics()));
        return List.copyOf(all);
    }

    @Override
    public List<ModelStatistics> statistics(ModelRef model) {
        ModelEntry entry = entries.get(model.name());
        List<ModelStatistics> versions = entry == null ? List.of() : entry.statistics();
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

    /**
     * Returns whether every version of every model serves or was unloaded on purpose. The backend of a model reports
     * whether it serves.
     *
     * @return whether all are ready
     */
    public boolean allReady() {
        for (ModelEntry entry : entries.values()) {
            if (entry.versions().isEmpty()
                    || !entry.versions().values().stream().allMatch(ServedModels::isReadyOrUnloaded)) {
                return false;
            }
        }
        return true;
    }

    /** Lists the models and versions that could not be loaded. */
    List<ModelStatus> failures() {
        return index().stream()
                .filter(status -> status.state() == ModelStatus.State.UNAVAILABLE)
                .filter(status -> !status.reason().equals(VersionState.UNLOADED))
                .toList();
    }

    List<ServedModel> ready() {
        List<ServedModel> ready = new ArrayList<>();
        entries.values().forEach(entry -> ready.addAll(ready(entry)));
        return ready;
    }

    private static List<ServedModel> ready(ModelEntry entry) {
        List<ServedModel> ready = new ArrayList<>();
        for (VersionState state : entry.versions().values()) {
            if (state instanceof VersionState.Ready(ServedModel model)) {
                ready.add(model);
            }
        }
        return ready;
    }

    /** Returns the versions of a model; throws if there is no such model. */
    NavigableMap<Long, VersionState> versions(String model) {
        return entry(ModelRef.latest(model)).versions();
    }

    void put(String name, ModelEntry entry) {
        entries.put(name, entry);
    }

    void change(String name, UnaryOperator<ModelEntry> change) {
        entries.computeIfPresent(name, (key, entry) -> change.apply(entry));
    }

    private static boolean isReadyOrUnloaded(VersionState state) {
        return switch (state) {
            case VersionState.Loading() -> false;
            case VersionState.Ready(ServedModel model) -> model.isReady();
            case VersionState.Unavailable(String reason) -> reason.equals(VersionState.UNLOADED);
        };
    }

    /** Makes the server not ready from now on. Models that still complete their requests are excepted. */
    void end() {
        ended = true;
    }

    private ModelEntry entry(ModelRef model) {
        ModelEntry entry = entries.get(model.name());
        if (ended && (entry == null || !serves(entry))) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
        }
        if (entry == null) {
            throw ModelEntry.notFound(model);
        }
        return entry;
    }

    private static boolean serves(ModelEntry entry) {
        return entry.versions().values().stream().anyMatch(VersionState.Ready.class::isInstance);
    }
}
