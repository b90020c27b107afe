package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.parameter.ModelParameters;
import dev.nereid.repository.config.BatchTensors;
import dev.nereid.repository.config.MisspeltParameters;
import dev.nereid.repository.config.ModelConfigJson;
import dev.nereid.repository.config.SequenceTensors;
import dev.nereid.repository.config.TensorSpecs;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.Supervision;
import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.TensorSpec;
import inference.DataType;
import inference.ModelConfig;
import inference.ModelDynamicBatching;
import inference.ModelInput;
import inference.ModelOutput;
import inference.ModelQueuePolicy;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Converts checked configurations to the views of backends, schedulers and clients. */
public final class ModelSettingsReader {
    private static final Logger LOG = LoggerFactory.getLogger(ModelSettingsReader.class);
    private static final long NANOS_PER_MICRO = 1_000;

    private ModelSettingsReader() {}

    /**
     * Returns a configuration as a backend needs it.
     *
     * @param config a configuration; if it is to be completed yet, inputs and outputs may be missing
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if an input or output has no data type, or if the
     *     configuration of batch inputs, batch outputs or sequences is wrong
     */
    public static ModelSettings settings(ModelConfig config, long version) {
        return settings(config, config.getInputList(), config.getOutputList(), version);
    }

    /**
     * Returns the settings for a backend that is to complete a configuration. Inputs and outputs without a data type
     * are only in the JSON.
     */
    public static ModelSettings settingsSoFar(ModelConfig config, long version) {
        return settings(
                config,
                config.getInputList().stream()
                        .filter(input -> input.getDataType() != DataType.TYPE_INVALID)
                        .toList(),
                config.getOutputList().stream()
                        .filter(output -> output.getDataType() != DataType.TYPE_INVALID)
                        .toList(),
                version);
    }

    private static ModelSettings settings(
            ModelConfig config, List<ModelInput> inputs, List<ModelOutput> outputs, long version) {
        ModelSettingsBuilder settings = ModelSettings.builder(config.getName(), version)
                .maxBatchSize(config.getMaxBatchSize())
                .decoupled(config.getModelTransactionPolicy().getDecoupled())
                .modelFilename(config.getDefaultModelFilename())
                .json(ModelConfigJson.write(config));
        inputs.stream().map(TensorSpecs::of).forEach(settings::input);
        outputs.stream().map(TensorSpecs::of).forEach(settings::output);
        config.getBatchInputList().forEach(input -> settings.batchInput(BatchTensors.of(config, input)));
        config.getBatchOutputList().forEach(output -> settings.batchOutput(BatchTensors.of(config, output)));
        if (config.hasSequenceBatching()) {
            long idleMicros = config.getSequenceBatching().getMaxSequenceIdleMicroseconds();
            settings.sequenceBatching(SequenceTensors.of(config, Duration.ofNanos(nanos(idleMicros))));
        }
        return settings.build();
    }

    /** Returns the parameters of a configuration, of which none was read. Completion does not change them. */
    public static ModelParameters parameters(ModelConfig config) {
        Map<String, String> parameters = new HashMap<>();
        config.getParametersMap().forEach((key, value) -> parameters.put(key, value.getStringValue()));
        return ModelParameters.of(parameters);
    }

    /**
     * Returns the batching and queue policy of a model.
     *
     * @param config a normalized, checked configuration
     * @return the policy of its dynamic batching, or {@link BatchingPolicy#NONE}
     */
    public static BatchingPolicy batchingPolicy(ModelConfig config) {
        if (!config.hasDynamicBatching()) {
            return BatchingPolicy.NONE;
        }
        ModelDynamicBatching batching = config.getDynamicBatching();
        return new BatchingPolicy(
                true,
                batching.getPreferredBatchSizeList(),
                nanos(batching.getMaxQueueDelayMicroseconds()),
                batching.getPreserveOrdering(),
                priorities(batching));
    }

    private static PriorityPolicy priorities(ModelDynamicBatching batching) {
        Map<Long, QueuePolicy> byLevel = new HashMap<>();
        batching.getPriorityQueuePolicyMap().forEach((level, policy) -> byLevel.put(level, queuePolicy(policy)));
        return new PriorityPolicy(
                batching.getPriorityLevels(),
                batching.getDefaultPriorityLevel(),
                queuePolicy(batching.getDefaultQueuePolicy()),
                byLevel);
    }

    private static QueuePolicy queuePolicy(ModelQueuePolicy policy) {
        boolean delays = policy.getTimeoutAction() == ModelQueuePolicy.TimeoutAction.DELAY;
        return new QueuePolicy(
                delays ? QueuePolicy.TimeoutAction.DELAY : QueuePolicy.TimeoutAction.REJECT,
                nanos(policy.getDefaultTimeoutMicroseconds()),
                policy.getAllowTimeoutOverride(),
                Integer.toUnsignedLong(policy.getMaxQueueSize()));
    }

    /** Unsigned microseconds as nanoseconds; as many as there are if that is too many. */
    static long nanos(long micros) {
        boolean fits = Long.compareUnsigned(micros, Long.MAX_VALUE / NANOS_PER_MICRO) <= 0;
        return fits ? micros * NANOS_PER_MICRO : Long.MAX_VALUE;
    }

    /**
     * Describes a model as clients see it.
     *
     * @param config a completed, checked configuration
     * @param versions the versions to list, in rising order
     */
    public static ModelMetadata description(ModelConfig config, List<Long> versions) {
        return new ModelMetadata(
                config.getName(),
                versions,
                config.getPlatform().isEmpty() ? config.getBackend() : config.getPlatform(),
                config.getMaxBatchSize(),
                config.getModelTransactionPolicy().getDecoupled(),
                inputs(config),
                outputs(config));
    }

    private static List<TensorSpec> inputs(ModelConfig config) {
        return config.getInputList().stream().map(TensorSpecs::of).toList();
    }

    private static List<TensorSpec> outputs(ModelConfig config) {
        return config.getOutputList().stream().map(TensorSpecs::of).toList();
    }

    /**
     * Returns the supervision of a model, with its limit of executions.
     *
     * @param config its configuration; a parameter in it takes precedence
     * @param server the supervision of models without it
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if the parameter is no number of seconds
     */
    static Supervision supervision(ModelConfig config, Supervision server) {
        if (!config.containsParameters(MisspeltParameters.EXECUTION_LIMIT)) {
            return server;
        }
        String value =
                config.getParametersOrThrow(MisspeltParameters.EXECUTION_LIMIT).getStringValue();
        int seconds = seconds(value);
        if (seconds < 0) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "model '" + config.getName() + "': parameter '" + MisspeltParameters.EXECUTION_LIMIT + "': '"
                            + value + "' (expected: a whole number of seconds, 0 or more)");
        }
        return server.withExecutionLimit(Duration.ofSeconds(seconds));
    }

    private static int seconds(String value) {
        try {
            return Integer.parseInt(value.strip());
        } catch (NumberFormatException e) {
            return -1;
        }
    }

    /**
     * Returns the server's cache, if a model enables it; warns if there is none. Blocks: the identity reads all files
     * of the model.
     *
     * @param cache the server's cache; empty if it has none
     * @param identity the identity of the model's files; computed only if the model uses a cache
     */
    public static Optional<CacheAccess> cache(ModelConfig config, Optional<CacheAccess> cache, LoadIdentity identity) {
        if (!config.getResponseCache().getEnable()) {
            return Optional.empty();
        }
        if (cache.isEmpty()) {
            LOG.atWarn()
                    .addKeyValue("model", config.getName())
                    .log(
                            "response_cache has no effect: the server has no cache (expected: --cache-config) (model '{}')",
                            config.getName());
            return Optional.empty();
        }
        identity.compute();
        return cache.map(access -> access.withLoadIds(identity::known));
    }
}
