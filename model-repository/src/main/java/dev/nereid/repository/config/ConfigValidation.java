package dev.nereid.repository.config;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Spelling;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import inference.ModelDynamicBatching;
import inference.ModelInstanceGroup;
import inference.ModelMetrics;
import inference.ModelOutput;
import inference.ModelQueuePolicy;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;

/**
 * Checks configurations, with the error texts of the reference server. All methods throw {@link InferenceException},
 * with {@link ErrorCode#INVALID_ARGUMENT} unless they document another code.
 */
public final class ConfigValidation {
    private static final String ENSEMBLE = "ensemble";

    /** The platforms of the backends of the reference server; other backends may have any platform. */
    private static final Map<String, Set<String>> PLATFORMS = Map.of(
            "tensorflow", Set.of("tensorflow_savedmodel", "tensorflow_graphdef"),
            "tensorrt", Set.of("tensorrt_plan"),
            "onnxruntime", Set.of("onnxruntime_onnx"),
            "pytorch", Set.of("pytorch_libtorch", "libtorch", "torch_aoti"));

    private static final SortedSet<String> ALL_PLATFORMS =
            new TreeSet<>(PLATFORMS.values().stream().flatMap(Set::stream).toList());

    private ConfigValidation() {}

    /**
     * Checks everything that can be checked without the backend. That is all but inputs, outputs and instance groups.
     *
     * @param config a normalized configuration
     */
    public static void check(ModelConfig config, String directoryName) {
        checkIdentity(config, directoryName);
        checkBackend(config);
        String model = config.getName();
        if (config.getMaxBatchSize() < 0) {
            throw invalid("'max_batch_size' must be non-negative value for " + model);
        }
        if (!config.hasVersionPolicy()) {
            throw invalid("must specify 'version policy' for " + model);
        }
        if (config.hasDynamicBatching()) {
            checkDynamicBatching(config.getDynamicBatching(), config.getMaxBatchSize(), model);
        }
        if (config.hasSequenceBatching()) {
            SequenceValidation.check(config);
        }
        if (config.hasEnsembleScheduling()) {
            EnsembleValidation.check(config);
        }
        checkResponseCache(config);
        checkMetrics(config.getModelMetrics());
    }

    /**
     * Checks inputs, outputs, batch inputs, batch outputs and label files. To be called before the load if completion
     * by the backend is off, and after it otherwise.
     *
     * @param config a configuration with all its inputs and outputs
     * @throws InferenceException {@link ErrorCode#UNSUPPORTED} if a label file lies outside the model's directory
     */
    public static void checkTensors(ModelConfig config) {
        TensorValidation.check(config);
        BatchTensors.check(config);
        checkLabelFiles(config);
    }

    /** Checks inputs and outputs as far as they are given. To be called before a backend completes them. */
    public static void checkGivenTensors(ModelConfig config) {
        TensorValidation.checkGiven(config);
    }

    /**
     * Checks the groups of instances; ensembles have none.
     *
     * @param config a configuration with filled-in groups
     * @param gpus the numbers of the graphics processors that instances may run on; empty if there are none
     */
    public static void checkInstanceGroups(ModelConfig config, List<Integer> gpus) {
        InstanceGroupValidation.check(config, gpus);
    }

    /** Lists settings that are accepted and have no effect. The model's responses are right without them. */
    public static List<String> ignored(ModelConfig config, boolean rateLimited) {
        return !rateLimited && config.getInstanceGroupList().stream().anyMatch(ModelInstanceGroup::hasRateLimiter)
                ? List.of("instance_group.rate_limiter")
                : List.of();
    }

    private static void checkIdentity(ModelConfig config, String directoryName) {
        String model = config.getName();
        if (model.isEmpty()) {
            throw invalid("model configuration must specify 'name'");
        }
        if (!model.equals(directoryName)) {
            throw invalid("unexpected directory name '" + directoryName + "' for model '" + model
                    + "', directory name must equal model name");
        }
    }

    /** Returns a sentence behind the text of the reference server, or nothing. */
    private static String question(String platform, SortedSet<String> platforms) {
        String question = Spelling.question(platform, platforms);
        return question.isEmpty() ? "" : "." + question;
    }

    private static void checkBackend(ModelConfig config) {
        String model = config.getName();
        String backend = config.getBackend();
        String platform = config.getPlatform();
        boolean isEnsemble = platform.equals(ENSEMBLE);
        if (backend.isEmpty() && !isEnsemble) {
            throw invalid(
                    "unexpected platform type '" + platform + "' for " + model + question(platform, ALL_PLATFORMS));
        }
        if (!backend.isEmpty() && isEnsemble) {
            throw invalid("Ensemble model '" + model + "' must have platform type 'ensemble' and empty backend type");
        }
        Set<String> platforms = PLATFORMS.get(backend);
        if (platforms != null && !platforms.contains(platform)) {
            throw invalid("unexpected 'platform' and 'backend' pair, got:" + platform + ", " + backend
                    + question(platform, new TreeSet<>(platforms)));
        }
        if (isEnsemble && !config.hasEnsembleScheduling()) {
            throw invalid("ensemble scheduling must be set for ensemble " + model + " whose platform is " + ENSEMBLE);
        }
    }

    private static void checkDynamicBatching(ModelDynamicBatching batching, int maxBatchSize, String model) {
        for (int size : batching.getPreferredBatchSizeList()) {
            if (size <= 0) {
                throw invalid("dynamic batching preferred size must be positive for " + model);
            }
            if (size > maxBatchSize) {
                throw invalid("dynamic batching preferred size must be <= max batch size for " + model);
            }
        }
        checkPriorities(batching, model);
        if (batching.getPreserveOrdering()) {
            checkOrdering(batching, model);
        }
    }

    /** Levels are unsigned. */
    private static void checkPriorities(ModelDynamicBatching batching, String model) {
        long levels = batching.getPriorityLevels();
        if (levels == 0) {
            return;
        }
        String range = "in range [1, " + Long.toUnsignedString(levels) + "] for " + model;
        if (!isLevel(batching.getDefaultPriorityLevel(), levels)) {
            throw invalid("default priority level must be " + range);
        }
        for (long level : batching.getPriorityQueuePolicyMap().keySet()) {
            if (!isLevel(level, levels)) {
                throw invalid("priority queue policy must have priority level " + range);
            }
        }
    }

    private static boolean isLevel(long level, long levels) {
        return level != 0 && Long.compareUnsigned(level, levels) <= 0;
    }

    private static void checkOrdering(ModelDynamicBatching batching, String model) {
        if (Long.compareUnsigned(batching.getPriorityLevels(), 1) > 0) {
            throw invalid("Only one priority level is allowed when 'preserve_ordering' is true for " + model);
        }
        boolean mayDelay = delays(batching.getDefaultQueuePolicy())
                || batching.getPriorityQueuePolicyMap().values().stream().anyMatch(ConfigValidation::delays);
        if (mayDelay) {
            throw invalid(
                    "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for " + model);
        }
    }

    private static boolean delays(ModelQueuePolicy policy) {
        return policy.getDefaultTimeoutMicroseconds() != 0
                && policy.getTimeoutAction() == ModelQueuePolicy.TimeoutAction.DELAY;
    }

    private static void checkResponseCache(ModelConfig config) {
        if (!config.getResponseCache().getEnable()) {
            return;
        }
        String start = "Response Cache does not currently support model " + config.getName();
        if (config.hasSequenceBatching()) {
            throw invalid(start + " with sequence batching scheduler. Please disable the response cache.");
        }
        if (config.getModelTransactionPolicy().getDecoupled()) {
            throw invalid(start + " with 'decoupled' transaction policy. Please disable the response cache.");
        }
    }

    private static void checkMetrics(ModelMetrics metrics) {
        for (ModelMetrics.MetricControl control : metrics.getMetricControlList()) {
            if (!control.hasMetricIdentifier()) {
                throw invalid("metric control must specify 'metric_identifier'");
            }
            if (control.getMetricIdentifier().getFamily().isEmpty()) {
                throw invalid("metric identifier must specify non-empty 'family'");
            }
            if (!control.hasHistogramOptions()) {
                throw invalid("metric control must specify 'histogram_options'");
            }
            if (control.getHistogramOptions().getBucketsCount() == 0) {
                throw invalid("histogram options must specify non-empty 'buckets'");
            }
        }
    }

    private static void checkLabelFiles(ModelConfig config) {
        Path directory = Path.of("model");
        for (ModelOutput output : config.getOutputList()) {
            String file = output.getLabelFilename();
            if (!file.isEmpty() && !isInside(directory, file)) {
                throw new InferenceException(
                        ErrorCode.UNSUPPORTED,
                        "label file path '" + file + "' for output '" + output.getName() + "' in model '"
                                + config.getName() + "' is outside model directory");
            }
        }
    }

    /** Returns whether a name stays below a directory. A leading slash is ignored, as in the reference. */
    private static boolean isInside(Path directory, String name) {
        if (name.indexOf('\0') >= 0) {
            return false;
        }
        return directory.resolve(name.replaceFirst("^/+", "")).normalize().startsWith(directory);
    }
}
