package dev.nereid.repository.config;

import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Device;
import inference.ModelConfig;
import inference.ModelDynamicBatching;
import inference.ModelInstanceGroup;
import inference.ModelOptimizationPolicy;
import inference.ModelOptimizationPolicy.PinnedMemoryBuffer;
import inference.ModelSequenceBatching;
import inference.ModelVersionPolicy;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Writes the defaults of the reference server into a configuration. */
public final class ConfigNormalization {
    /** The default time that a sequence may be idle. */
    private static final long SEQUENCE_IDLE_MICROS = 1_000_000;

    /** Backends of which the reference runs two instances on a processor. A configured number takes precedence. */
    private static final Set<String> TWO_CPU_INSTANCES = Set.of("onnxruntime", "tensorflow");

    private ConfigNormalization() {}

    /**
     * Fills in the defaults that need no backend. Applying it twice is the same as once.
     *
     * @return the configuration with version policy, preferred batch sizes, idle time and pinned memory filled in
     */
    public static ModelConfig normalize(ModelConfig config) {
        ModelConfig.Builder normalized = config.toBuilder();
        if (!normalized.hasVersionPolicy()) {
            normalized.setVersionPolicy(ModelVersionPolicy.newBuilder()
                    .setLatest(ModelVersionPolicy.Latest.newBuilder().setNumVersions(1)));
        }
        if (normalized.hasDynamicBatching()) {
            normalizeDynamicBatching(normalized.getDynamicBatchingBuilder(), config.getMaxBatchSize());
        }
        if (normalized.hasSequenceBatching()) {
            normalizeSequenceBatching(normalized.getSequenceBatchingBuilder(), config.getMaxBatchSize());
        }
        if (!normalized.hasEnsembleScheduling()) {
            normalizeOptimization(normalized.getOptimizationBuilder());
        }
        return normalized.build();
    }

    private static void normalizeDynamicBatching(ModelDynamicBatching.Builder batching, int maxBatchSize) {
        if (batching.getPreferredBatchSizeCount() == 0 && maxBatchSize > 0) {
            batching.addPreferredBatchSize(maxBatchSize);
        }
    }

    private static void normalizeSequenceBatching(ModelSequenceBatching.Builder batching, int maxBatchSize) {
        if (batching.getMaxSequenceIdleMicroseconds() == 0) {
            batching.setMaxSequenceIdleMicroseconds(SEQUENCE_IDLE_MICROS);
        }
        if (batching.hasOldest() && batching.getOldest().getPreferredBatchSizeCount() == 0 && maxBatchSize > 0) {
            batching.getOldestBuilder().addPreferredBatchSize(maxBatchSize);
        }
    }

    private static void normalizeOptimization(ModelOptimizationPolicy.Builder optimization) {
        PinnedMemoryBuffer pinned =
                PinnedMemoryBuffer.newBuilder().setEnable(true).build();
        if (!optimization.hasInputPinnedMemory()) {
            optimization.setInputPinnedMemory(pinned);
        }
        if (!optimization.hasOutputPinnedMemory()) {
            optimization.setOutputPinnedMemory(pinned);
        }
    }

    /**
     * Fills in the groups of instances. There is at least one, each with name, kind, count and devices. Ensembles have
     * none and are returned as they are.
     *
     * @param traits the traits of the model's backend, with the kind and count of default instances
     * @param gpus the numbers of the graphics processors that instances may run on; empty if there are none
     */
    public static ModelConfig instanceGroups(ModelConfig config, BackendTraits traits, List<Integer> gpus) {
        if (config.hasEnsembleScheduling()) {
            return config;
        }
        ModelConfig.Builder normalized = config.toBuilder();
        if (normalized.getInstanceGroupCount() == 0) {
            normalized.addInstanceGroup(defaultGroup(config.getName(), traits, gpus));
        }
        for (int i = 0; i < normalized.getInstanceGroupCount(); i++) {
            ModelInstanceGroup.Builder group = normalized.getInstanceGroupBuilder(i);
            if (group.getName().isEmpty()) {
                group.setName(config.getName() + "_" + i);
            }
            if (group.getKind() == ModelInstanceGroup.Kind.KIND_AUTO) {
                group.setKind(
                        !gpus.isEmpty() && gpus.containsAll(group.getGpusList()) && !prefersCpuAlone(traits)
                                ? ModelInstanceGroup.Kind.KIND_GPU
                                : ModelInstanceGroup.Kind.KIND_CPU);
            }
            if (group.getCount() < 1) {
                group.setCount(defaultCount(group.getKind(), config.getBackend(), traits));
            }
            if (group.getKind() == ModelInstanceGroup.Kind.KIND_GPU && group.getGpusCount() == 0) {
                group.addAllGpus(gpus);
            }
        }
        return normalized.build();
    }

    private static ModelInstanceGroup defaultGroup(String model, BackendTraits traits, List<Integer> gpus) {
        ModelInstanceGroup.Builder group = ModelInstanceGroup.newBuilder().setName(model);
        Optional<BackendTraits.PreferredGroup> usable = traits.preferredGroups().stream()
                .filter(preferred -> preferred.kind() != Device.Kind.GPU || !gpus.isEmpty())
                .findFirst();
        usable.ifPresent(preferred -> group.setKind(kind(preferred.kind())).setCount(preferred.count()));
        return group.build();
    }

    /**
     * Returns whether a backend has preferred groups, and all are on the CPU. Such a backend cannot or should not run
     * on the GPUs of this machine, so that {@code KIND_AUTO} means the CPU.
     */
    private static boolean prefersCpuAlone(BackendTraits traits) {
        return !traits.preferredGroups().isEmpty()
                && traits.preferredGroups().stream().allMatch(preferred -> preferred.kind() == Device.Kind.CPU);
    }

    private static int defaultCount(ModelInstanceGroup.Kind kind, String backend, BackendTraits traits) {
        for (BackendTraits.PreferredGroup preferred : traits.preferredGroups()) {
            if (kind(preferred.kind()) == kind) {
                return preferred.count();
            }
        }
        return kind == ModelInstanceGroup.Kind.KIND_CPU && TWO_CPU_INSTANCES.contains(backend) ? 2 : 1;
    }

    private static ModelInstanceGroup.Kind kind(Device.Kind kind) {
        return switch (kind) {
            case CPU -> ModelInstanceGroup.Kind.KIND_CPU;
            case GPU -> ModelInstanceGroup.Kind.KIND_GPU;
            case MODEL -> ModelInstanceGroup.Kind.KIND_MODEL;
        };
    }
}
