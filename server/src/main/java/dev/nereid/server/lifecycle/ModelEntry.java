package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A snapshot of a model and the states of its versions. Immutable: a change creates another entry, so that a reader
 * sees versions that belong together.
 */
final class ModelEntry {
    private final String name;

    /** The state of the whole model while it has no versions. */
    private final VersionState overall;

    private final NavigableMap<Long, VersionState> versions;
    private final @Nullable ServedModel latest;
    private final @Nullable ModelMetadata latestDescription;

    private ModelEntry(String name, VersionState overall, NavigableMap<Long, VersionState> versions) {
        this.name = name;
        this.overall = overall;
        this.versions = new TreeMap<>(versions);
        List<Long> ready = new ArrayList<>();
        ServedModel highest = null;
        for (var version : this.versions.entrySet()) {
            if (version.getValue() instanceof VersionState.Ready(ServedModel model)) {
                ready.add(version.getKey());
                highest = model;
            }
        }
        latest = highest;
        latestDescription = highest == null ? null : highest.description(ready);
    }

    /** Creates the entry of a model without versions. */
    static ModelEntry of(String name, VersionState overall) {
        return new ModelEntry(name, overall, new TreeMap<>());
    }

    /** A model with versions. */
    static ModelEntry of(String name, NavigableMap<Long, VersionState> versions) {
        return new ModelEntry(name, new VersionState.Loading(), versions);
    }

    /** Replaces the state of one version. */
    ModelEntry with(long version, VersionState state) {
        TreeMap<Long, VersionState> changed = new TreeMap<>(versions);
        changed.put(version, state);
        return new ModelEntry(name, overall, changed);
    }

    NavigableMap<Long, VersionState> versions() {
        return versions;
    }

    /** Finds the version that a client requests, with the errors of the reference server. */
    ServedModel resolve(ModelRef ref) {
        if (versions.isEmpty()) {
            throw notFound(ref);
        }
        if (ref.version() == ModelRef.LATEST) {
            if (latest == null) {
                throw new InferenceException(
                        ErrorCode.NOT_FOUND, "Request for unknown model: " + ref + " has no available versions");
            }
            return latest;
        }
        VersionState state = versions.get(ref.version());
        if (state == null) {
            throw notFound(ref);
        }
        if (state instanceof VersionState.Ready(ServedModel model)) {
            return model;
        }
        throw new InferenceException(
                ErrorCode.UNAVAILABLE, "Request for unknown model: " + ref + " is not at ready state");
    }

    /**
     * Describes the version that a client requests, or the latest one. The latest is described together with all others
     * that are ready.
     */
    ModelMetadata describe(ModelRef ref) {
        ServedModel model = resolve(ref);
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

    /** Returns the statistics of the versions that are ready. */
    List<ModelStatistics> statistics() {
        List<ModelStatistics> statistics = new ArrayList<>();
        for (VersionState state : versions.values()) {
            if (state instanceof VersionState.Ready(ServedModel model)) {
                statistics.add(model.statistics());
            }
        }
        return statistics;
    }

    static InferenceException notFound(ModelRef ref) {
        return new InferenceException(ErrorCode.NOT_FOUND, "Request for unknown model: " + ref + " is not found");
    }
}
