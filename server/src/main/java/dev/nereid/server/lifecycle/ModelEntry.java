package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.repository.ModelKey;
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

    /** The state of the whole model while it has no versions. */
    private final VersionState overall;

    private final NavigableMap<Long, VersionState> versions;
    private final @Nullable Generation latest;
    private final @Nullable ModelMetadata latestDescription;

    private ModelEntry(String name, VersionState overall, NavigableMap<Long, VersionState> versions) {
        this.name = name;
        this.overall = overall;
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

    /**
     * Creates the entry of a model without versions.
     *
     * @param key the model's key
     * @param overall the state of the model
     * @return the entry
     */
    public static ModelEntry of(String key, VersionState overall) {
        return new ModelEntry(ModelKey.name(key), overall, new TreeMap<>());
    }

    /**
     * Creates the entry of a model with versions.
     *
     * @param key the model's key
     * @param versions the states of its versions
     * @return the entry
     */
    public static ModelEntry of(String key, NavigableMap<Long, VersionState> versions) {
        return new ModelEntry(ModelKey.name(key), new VersionState.Loading(), versions);
    }

    /**
     * Returns the states of the versions.
     *
     * @return the states in rising order of versions, a copy
     */
    public NavigableMap<Long, VersionState> versions() {
        return new TreeMap<>(versions);
    }

    /**
     * Returns the generations that serve.
     *
     * @return the generations of the versions that are ready, by version, a copy
     */
    public NavigableMap<Long, Generation> ready() {
        NavigableMap<Long, Generation> ready = new TreeMap<>();
        versions.forEach((version, state) -> {
            if (state instanceof VersionState.Ready(Generation generation)) {
                ready.put(version, generation);
            }
        });
        return ready;
    }

    /**
     * Returns whether the model as a whole cannot be loaded, such as for a wrong configuration.
     *
     * @return whether no version was tried
     */
    public boolean isInvalid() {
        return versions.isEmpty() && overall instanceof VersionState.Unavailable;
    }

    /**
     * Returns why the model does not serve.
     *
     * @return the reason of the model as a whole, or of the highest version that is not available; empty if there is none
     */
    public Optional<String> reason() {
        if (overall instanceof VersionState.Unavailable(String reason) && versions.isEmpty()) {
            return Optional.of(reason);
        }
        Optional<String> highest = Optional.empty();
        for (VersionState state : versions.values()) {
            if (state instanceof VersionState.Unavailable(String reason)) {
                highest = Optional.of(reason);
            }
        }
        return highest;
    }

    /** Returns whether a version serves. */
    boolean serves() {
        return latest != null;
    }

    /**
     * Returns whether all versions serve, and there is one.
     *
     * @return whether nothing of the model failed, loads or unloads
     */
    public boolean isWhole() {
        return !versions.isEmpty() && versions.values().stream().allMatch(VersionState.Ready.class::isInstance);
    }

    /**
     * Returns whether the model is about to be loaded, and no version of it is known.
     *
     * @return whether it is
     */
    public boolean isLoading() {
        return versions.isEmpty() && overall instanceof VersionState.Loading;
    }

    /** Returns whether every version was unloaded on purpose. */
    boolean isUnloaded() {
        return !versions.isEmpty()
                && versions.values().stream()
                        .allMatch(state -> state instanceof VersionState.Unavailable(String reason)
                                && reason.equals(VersionState.UNLOADED));
    }

    /** Returns whether every version serves or was unloaded on purpose. The backend reports whether it serves. */
    boolean isReady() {
        return !versions.isEmpty() && versions.values().stream().allMatch(ModelEntry::isReady);
    }

    private static boolean isReady(VersionState state) {
        return switch (state) {
            case VersionState.Loading() -> false;
            case VersionState.OnDemand() -> true;
            case VersionState.Ready(Generation generation) -> generation.model().isReady();
            case VersionState.Unloading(Generation generation) -> false;
            case VersionState.Unavailable(String reason) -> reason.equals(VersionState.UNLOADED);
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
        if (versions.isEmpty() || (ref.version() != ModelRef.LATEST && !versions.containsKey(ref.version()))) {
            return notFound(ref);
        }
        return ref.version() == ModelRef.LATEST
                ? new InferenceException(
                        ErrorCode.NOT_FOUND, "Request for unknown model: " + ref + " has no available versions")
                : new InferenceException(
                        ErrorCode.UNAVAILABLE, "Request for unknown model: " + ref + " is not at ready state");
    }

    /** Returns whether a version, or the model as a whole, has failed to load. */
    boolean isFailed(ModelRef ref) {
        return versions.isEmpty()
                ? overall instanceof VersionState.Unavailable
                : versions.entrySet().stream()
                        .filter(version -> ref.version() == ModelRef.LATEST || ref.version() == version.getKey())
                        .anyMatch(version -> version.getValue() instanceof VersionState.Unavailable);
    }

    /**
     * Describes the version that a client requests, or the latest one. The latest is described together with all others
     * that are ready.
     */
    ModelMetadata describe(ModelRef ref) {
        return describe(ref, resolve(ref).model());
    }

    /** Describes a loaded version of this model. */
    ModelMetadata describe(ModelRef ref, ServedModel model) {
        return ref.version() == ModelRef.LATEST && latestDescription != null ? latestDescription : model.description();
    }

    List<ModelStatus> statuses() {
        if (versions.isEmpty()) {
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
                case VersionState.Loading(), VersionState.OnDemand(), VersionState.Unavailable(String _) -> {}
            }
        }
        return loaded;
    }

    /**
     * Creates the error of a model that is not known.
     *
     * @param ref the model as the client names it
     * @return the error
     */
    public static InferenceException notFound(ModelRef ref) {
        return new InferenceException(ErrorCode.NOT_FOUND, "Request for unknown model: " + ref + " is not found");
    }
}
