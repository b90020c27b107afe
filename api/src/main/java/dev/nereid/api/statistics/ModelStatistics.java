package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.MemoryUsage;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Statistics of a model version since its load, taken at one moment. Immutable.
 *
 * @param name the model's name
 * @param version the version
 * @param lastInferenceMillis when the last execution ended, in milliseconds since the epoch; 0 if there was none
 * @param inferenceCount the items of all requests that were executed well
 * @param executionCount how many batches were executed
 * @param tags what the configuration adds to the labels of metrics: {@code metric_tags}
 * @param inferences where requests spent their time
 * @param batches the executions by their batch sizes, in rising order
 * @param responses the responses of a decoupled model as its backend reported them, by their place in the request
 * @param memory how much memory the model occupies, as its backend told at the load
 * @param failures how many requests failed for which reason; every reason is there
 * @param micros the durations of requests as metrics tell them
 * @param cached whether responses of the model are kept in a cache
 * @param pending how many requests wait in the queue
 * @param loadSeconds how long the version took to load, in seconds
 */
public record ModelStatistics(
        String name,
        long version,
        long lastInferenceMillis,
        long inferenceCount,
        long executionCount,
        Map<String, String> tags,
        InferenceTimings inferences,
        List<BatchStatistics> batches,
        List<ResponseStatistics> responses,
        List<MemoryUsage> memory,
        Map<FailureReason, Long> failures,
        MicrosCounters micros,
        boolean cached,
        int pending,
        double loadSeconds) {
    /** Checks and copies the components. */
    public ModelStatistics {
        requireNonNull(name, "name");
        tags = Map.copyOf(tags);
        requireNonNull(inferences, "inferences");
        batches = List.copyOf(batches);
        responses = List.copyOf(responses);
        memory = List.copyOf(memory);
        EnumMap<FailureReason, Long> all = new EnumMap<>(FailureReason.class);
        for (FailureReason reason : FailureReason.values()) {
            all.put(reason, failures.getOrDefault(reason, 0L));
        }
        failures = Map.copyOf(all);
        requireNonNull(micros, "micros");
    }
}
