package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.repository.ModelKey;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A snapshot of a model and the states of its versions. Immutable: a change creates another entry, so that a reader
 * sees versions that belong together.
 */
public final class ModelEntry {
    private final String name;

    /**
     * The state of the whole model, in place of the states of its versions; {@code null} if the states of the versions
     * are known.
     */
    private final @Nullable VersionState overall;

    /** Set if the model could not be loaded because it has no version. */
    private final boolean lacksVersions;

    /** The states of the versions. Under a state of the whole model these are the versions that served before. */
    private final NavigableMap<Long, VersionState> versions;

    private final @Nullable Generation latest;
    private final @Nullable ModelMetadata latestDescription;

    private ModelEntry(
            String name,
            @Nullable VersionState overall,
            boolean lacksVersions,
            NavigableMap<Long, VersionState> versions) {
        this.name = name;
        this.overall = overall;
        this.lacksVersions = lacksVersions;
        this.versions = new TreeMap<>(versions);
        List<Long> ready = new ArrayList<>();
        Generation highest = null;
        for (var version : this.versions.entrySet()) {
            if (version.getValue() instanceof VersionState.Ready(Generation generation)) {
                ready.add(version.getKey());
                highest = generation;
            }
        }
        latest = highest;
        latestDescription = highest == null ? null : highest.model().description(ready);
    }

    /** Creates the entry of a model as a whole, before its versions are known. */
    public static ModelEntry of(String key, VersionState overall, NavigableMap<Long, VersionState> before) {
        return new ModelEntry(ModelKey.name(key), overall, false, before);
    }

    /** Creates the entry of a model that could not be loaded because no version was there. */
    public static ModelEntry withoutVersions(
            String key, VersionState overall, NavigableMap<Long, VersionState> before) {
        return new ModelEntry(ModelKey.name(key), overall, true, before);
    }

    /** Creates the entry of a model with versions. */
    public static ModelEntry of(String key, NavigableMap<Long, VersionState> versions) {
        return new ModelEntry(ModelKey.name(key), null, false, versions);
    }

    /** Returns the entry without failures, for a model in no repository any more; {@code null} if nothing is left. */
    public @Nullable ModelEntry gone() {
        if (overall instanceof VersionState.Loading) {
            return this;
        }
        NavigableMap<Long, VersionState> served = versions();
        served.values().removeIf(state -> state instanceof VersionState.Unavailable && !state.isUnloaded());
        if (overall == null && served.size() == versions.size()) {
            return this;
        }
        return served.isEmpty() ? null : new ModelEntry(name, null, false, served);
    }

    /** Returns the same entry with other states of the versions. */
    public ModelEntry with(NavigableMap<Long, VersionState> changed) {
        return new ModelEntry(name, overall, lacksVersions, changed);
    }

    /** Returns a copy of the states in rising order of versions. */
    public NavigableMap<Long, VersionState> versions() {
        return new TreeMap<>(versions);
    }

    /** Returns a copy of the generations that serve, by version. */
    public NavigableMap<Long, Generation> ready() {
        NavigableMap<Long, Generation> ready = new TreeMap<>();
        versions.forEach((version, state) -> {
            if (state instanceof VersionState.Ready(Generation generation)) {
                ready.put(version, generation);
            }
        });
        return ready;
    }

    /** Returns whether the model as a whole is wrong, such as its configuration, so that no version was tried. */
    public boolean isInvalid() {
        return overall instanceof VersionState.Unavailable;
    }

    /** Returns why the model, or its highest version that is not available, does not serve; empty if there is no reason. */
    public Optional<String> reason() {
        if (overall instanceof VersionState.Unavailable(String reason, boolean _)) {
            return Optional.of(reason);
        }
        Optional<String> highest = Optional.empty();
        for (VersionState state : versions.values()) {
            if (state instanceof VersionState.Unavailable(String reason, boolean _)
                    && (highest.isEmpty() || !state.isUnloaded())) {
                highest = Optional.of(reason);
            }
        }
        return highest;
    }

    boolean serves() {
        return latest != null;
    }

    /**
     * Returns whether all versions serve, and there is one. Versions that were unloaded on purpose do not count.
     *
     * @return whether nothing of the model failed, loads or unloads
     */
    public boolean isWhole() {
        return serves()
                && versions.values().stream()
                        .allMatch(state -> state instanceof VersionState.Ready || state.isUnloaded());
    }

    /** Returns whether the model is about to be loaded, and no version of it is known. */
    public boolean isLoading() {
        return overall instanceof VersionState.Loading;
    }

    /** Returns whether every version was unloaded on purpose, so that nothing of the model serves or failed. */
    public boolean isUnloaded() {
        return overall == null
                && !versions.isEmpty()
                && versions.values().stream().allMatch(VersionState::isUnloaded);
    }

    /** Returns whether a load that no client asked for has failed or goes on, so that the server is not ready. */
    public boolean isCounted() {
        return overall == null ? versions.values().stream().anyMatch(VersionState::isCounted) : overall.isCounted();
    }

    /** Returns whether a load that no client asked for has failed, so that the server is not ready. */
    public boolean hasCountedFailure() {
        return overall == null
                ? versions.values().stream().anyMatch(ModelEntry::isCountedFailure)
                : isCountedFailure(overall);
    }

    private static boolean isCountedFailure(VersionState state) {
        return state instanceof VersionState.Unavailable && state.isCounted();
    }

    /**
     * Returns whether nothing of the model keeps the server from being ready: a version that loads or failed does, unless
     * a client asked for the load. The backend reports whether a version serves.
     */
    boolean isReady() {
        return overall == null ? versions.values().stream().allMatch(ModelEntry::isReady) : isReady(overall);
    }

    private static boolean isReady(VersionState state) {
        return switch (state) {
            case VersionState.Loading(boolean isCounted) -> !isCounted;
            case VersionState.OnDemand(boolean _) -> true;
            case VersionState.Ready(Generation generation) -> generation.model().isReady();
            case VersionState.Unloading(Generation _) -> false;
            case VersionState.Unavailable(String _, boolean isCounted) -> !isCounted;
        };
    }

    /**
     * Returns the version that a client requests, if it is loaded.
     *
     * @param ref the model, and the version or {@link ModelRef#LATEST}
     * @return the generation that serves; the caller has no lease on it
     */
    public Optional<Generation> serving(ModelRef ref) {
        return Optional.ofNullable(find(ref));
    }

    /** Finds the version that a client requests, if it is loaded. */
    @Nullable
    Generation find(ModelRef ref) {
        if (ref.version() == ModelRef.LATEST) {
            return latest;
        }
        return versions.get(ref.version()) instanceof VersionState.Ready(Generation generation) ? generation : null;
    }

    /** Finds the version that a client requests, with the errors of the reference server. */
    Generation resolve(ModelRef ref) {
        Generation found = find(ref);
        if (found == null) {
            throw refusal(ref);
        }
        return found;
    }

    /** Returns why the version that a client requests is not served, with the texts of the reference server. */
    InferenceException refusal(ModelRef ref) {
        if (ref.version() == ModelRef.LATEST) {
            return versions.isEmpty() && !lacksVersions
                    ? notFound(ref)
                    : new InferenceException(
                            ErrorCode.NOT_FOUND, "Request for unknown model: " + ref + " has no available versions");
        }
        return versions.containsKey(ref.version())
                ? new InferenceException(
                        ErrorCode.UNAVAILABLE, "Request for unknown model: " + ref + " is not at ready state")
                : notFound(ref);
    }

    /** Returns whether a version, or the model as a whole, has failed to load. */
    boolean isFailed(ModelRef ref) {
        return overall == null
                ? versions.entrySet().stream()
                        .filter(version -> ref.version() == ModelRef.LATEST || ref.version() == version.getKey())
                        .anyMatch(version -> version.getValue() instanceof VersionState.Unavailable
                                && !version.getValue().isUnloaded())
                : overall instanceof VersionState.Unavailable;
    }

    /** Describes a loaded version of this model. */
    ModelMetadata describe(ModelRef ref, ServedModel model) {
        return ref.version() == ModelRef.LATEST && latestDescription != null ? latestDescription : model.description();
    }

    List<ModelStatus> statuses() {
        if (overall != null) {
            return List.of(new ModelStatus(name, OptionalLong.empty(), overall.state(), overall.reason()));
        }
        List<ModelStatus> statuses = new ArrayList<>();
        versions.forEach((version, state) ->
                statuses.add(new ModelStatus(name, OptionalLong.of(version), state.state(), state.reason())));
        return statuses;
    }

    /** Returns the versions that are ready, or complete their last requests. */
    List<ServedModel> loaded() {
        List<ServedModel> loaded = new ArrayList<>();
        for (VersionState state : versions.values()) {
            switch (state) {
                case VersionState.Ready(Generation generation) -> loaded.add(generation.model());
                case VersionState.Unloading(Generation generation) -> loaded.add(generation.model());
                case VersionState.Loading(boolean _),
                        VersionState.OnDemand(boolean _),
                        VersionState.Unavailable(String _, boolean _) -> {}
            }
        }
        return loaded;
    }

    /** Creates the error of a model that is not known, named as by the client. */
    public static InferenceException notFound(ModelRef ref) {
        return new InferenceException(ErrorCode.NOT_FOUND, "Request for unknown model: " + ref + " is not found");
    }
}
