package dev.nereid.server.lifecycle;

import dev.nereid.plugin.BackendLease;
import dev.nereid.plugin.BackendRegistry;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.config.ConfigValidation;
import dev.nereid.repository.files.FileCopies;
import dev.nereid.repository.files.VersionFiles;
import dev.nereid.scheduler.Supervision;
import dev.nereid.server.instance.LoadWaits;
import dev.nereid.spi.BackendException;
import inference.ModelConfig;
import java.util.List;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.function.Predicate;

/**
 * Describes models without loading them: their backends complete the configurations from the files. Immutable; blocks.
 */
public final class ModelDescriber {
    /** The memory of a loaded model besides its weights: its graph, buffers and plans. */
    static final long OVERHEAD_BYTES = 512L << 10;

    private final BackendRegistry backends;
    private final FileCopies copies;
    private final ModelLoadOptions options;
    private final MeterRegistry meters;
    private final boolean hasCache;
    private final Predicate<String> pinned;
    private final Supervision supervision;
    private final LoadWaits waits;

    /**
     * Creates the describer of a server.
     *
     * @param copies the copies of models' files for backends
     * @param options how models are loaded
     * @param meters the statistics of the versions
     * @param hasCache whether the server has a response cache
     * @param pinned selects the names of models that are never evicted, whatever their configurations say
     * @param supervision limits the time that tasks of backends may take after a completion
     * @param waits the waits of backends for slow work
     */
    public ModelDescriber(
            BackendRegistry backends,
            FileCopies copies,
            ModelLoadOptions options,
            MeterRegistry meters,
            boolean hasCache,
            Predicate<String> pinned,
            Supervision supervision,
            LoadWaits waits) {
        this.waits = waits;
        this.supervision = supervision;
        this.backends = backends;
        this.copies = copies;
        this.options = options;
        this.meters = meters;
        this.hasCache = hasCache;
        this.pinned = pinned;
    }

    /** Estimates the memory of a version by the size of its files, for backends that do not report it. */
    public static long estimatedBytes(long fileBytes) {
        return fileBytes + OVERHEAD_BYTES;
    }

    /**
     * Describes a model.
     *
     * @param byteSize the memory that it takes when it is loaded; 0 for an ensemble
     * @throws BackendException if its backend is missing, or cannot complete the configuration
     * @throws dev.nereid.api.InferenceException if the completed configuration is wrong
     */
    public OnDemandModel describe(PreparedModel prepared, long byteSize) {
        String key = prepared.directory().key();
        NavigableMap<Long, OnDemandModel.Version> versions = new TreeMap<>();
        if (prepared.config().hasEnsembleScheduling()) {
            ConfigValidation.checkTensors(prepared.config());
            prepared.versions()
                    .forEach(version -> versions.put(version, version(key, version, prepared.config(), Set.of())));
            return new OnDemandModel(key, versions, 0, pinned.test(ModelKey.name(key))); // its steps take memory
        }
        try (BackendLease lease = backends.acquire(prepared.config().getBackend())) {
            for (long version : prepared.versions()) {
                Set<String> required = new ConcurrentSkipListSet<>();
                PreparedModel recording = prepared.with(name -> {
                    required.add(name);
                    return true;
                });
                VersionFiles files = copies.of(prepared.directory());
                ModelConfig config =
                        VersionCompletion.complete(options, recording, version, lease, files, supervision, waits);
                versions.put(version, version(key, version, config, required));
            }
        }
        return new OnDemandModel(key, versions, byteSize, pinned.test(ModelKey.name(key)));
    }

    private OnDemandModel.Version version(String key, long version, ModelConfig config, Set<String> required) {
        return new OnDemandModel.Version(
                config,
                ModelSettingsReader.settings(config, version).json(),
                ModelSettingsReader.description(config, List.of(version)),
                ServedModel.tags(config, version, ModelKey.namespace(key)),
                meters.of(key, version),
                hasCache && config.getResponseCache().getEnable(),
                Set.copyOf(required));
    }

    /** Describes a model that serves, and is never evicted if {@code isKept}. */
    public OnDemandModel describe(String key, NavigableMap<Long, Generation> generations, boolean isKept) {
        NavigableMap<Long, OnDemandModel.Version> versions = new TreeMap<>();
        generations.forEach((version, generation) ->
                versions.put(version, generation.model().onDemand(meters.of(key, version))));
        return new OnDemandModel(
                key,
                versions,
                generations.values().stream().mapToLong(Generation::byteSize).sum(),
                isKept || pinned.test(ModelKey.name(key)));
    }
}
