package dev.nereid.server.lifecycle;

import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.MetricCounters;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.ModelVersionTags;
import dev.nereid.repository.config.MisspeltParameters;
import dev.nereid.scheduler.statistics.MeterReading;
import dev.nereid.scheduler.statistics.ModelMeter;
import inference.ModelConfig;
import inference.ModelEnsembling;
import inference.ModelParameter;
import java.util.List;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * Describes a model that is loaded on demand, while it is loaded or not. Immutable.
 *
 * <p>A request for a version that is not loaded receives this object in place of a generation, and waits for the load.
 */
public final class OnDemandModel implements Resolution {
    /** The configuration parameter that keeps a model loaded. */
    static final String PINNED = MisspeltParameters.PINNED;

    /**
     * A version that answers for its metadata, configuration and statistics while it is not loaded. Immutable.
     *
     * @param config the completed configuration
     * @param description the metadata of this version alone
     * @param tags the labels of its metrics
     * @param meter the statistics, which go on when it is loaded again
     * @param required the names of the models that it requires
     */
    record Version(
            ModelConfig config,
            String json,
            ModelMetadata description,
            ModelVersionTags tags,
            ModelMeter meter,
            boolean isCached,
            Set<String> required) {
        /** Returns the statistics of this version. It has no memory and no waiting requests. */
        ModelStatistics statistics() {
            MeterReading read = meter.read();
            return new ModelStatistics(
                    tags,
                    read.executions(),
                    read.inferences(),
                    read.responses(),
                    List.of(),
                    new MetricCounters(
                            read.failures(), read.micros(), isCached, 0, 0, read.inputCopies(), read.gpus()));
        }
    }

    private final String key;
    private final NavigableMap<Long, Version> versions;
    private final ModelMetadata latest;
    private final boolean isPinned;
    private final long byteSize;

    /**
     * Creates the description of a model.
     *
     * @param versions its versions, at least one
     * @param byteSize the memory that it takes when it is loaded, in bytes, as far as that is known
     * @param isPinned whether it is never evicted, whatever its configuration says
     */
    OnDemandModel(String key, NavigableMap<Long, Version> versions, long byteSize, boolean isPinned) {
        this.key = key;
        this.versions = new TreeMap<>(versions);
        this.byteSize = byteSize;
        latest = ModelSettingsReader.description(
                versions.lastEntry().getValue().config(), List.copyOf(this.versions.keySet()));
        this.isPinned = isPinned || versions.values().stream().anyMatch(OnDemandModel::isPinned);
    }

    private static boolean isPinned(Version version) {
        return Boolean.parseBoolean(version.config()
                .getParametersOrDefault(PINNED, ModelParameter.getDefaultInstance())
                .getStringValue());
    }

    public String key() {
        return key;
    }

    /** Returns whether the model is never evicted, as its configuration or the server's options say. */
    public boolean isPinned() {
        return isPinned;
    }

    /** Returns the bytes that all versions of the model take when it is loaded, measured or estimated. */
    public long byteSize() {
        return byteSize;
    }

    NavigableMap<Long, Version> versions() {
        return new TreeMap<>(versions);
    }

    /** Returns whether the model has the version that a client names. */
    boolean has(ModelRef ref) {
        return ref.version() == ModelRef.LATEST || versions.containsKey(ref.version());
    }

    /** Describes the version that a client names, which exists; without a version the latest one with all others. */
    ModelMetadata describe(ModelRef ref) {
        Version version = versions.get(ref.version());
        return version == null ? latest : version.description();
    }

    /** Returns the names of the models that it needs: of its steps, or as its versions require. */
    List<String> needed() {
        return Stream.concat(
                        versions.lastEntry().getValue().config().getEnsembleScheduling().getStepList().stream()
                                .map(ModelEnsembling.Step::getModelName),
                        versions.values().stream().flatMap(version -> version.required().stream()))
                .distinct()
                .toList();
    }

    /** Returns the configuration of the version that a client names. */
    ModelConfig config(ModelRef ref) {
        return version(ref).config();
    }

    /** Returns the configuration of the version that a client names, as JSON. */
    String configJson(ModelRef ref) {
        return version(ref).json();
    }

    private Version version(ModelRef ref) {
        Version version = versions.get(ref.version());
        return version == null ? versions.lastEntry().getValue() : version;
    }
}
