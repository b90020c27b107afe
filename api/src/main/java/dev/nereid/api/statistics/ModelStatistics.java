package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.MemoryUsage;
import java.util.List;

/**
 * Statistics of a model version since its load, taken at one moment. Immutable.
 *
 * @param model the model version
 * @param executions the counts of executions
 * @param inferences the durations of requests
 * @param responses the responses of a decoupled model as its backend reported them, by their index in the request
 * @param memory the memory that the model occupies, as its backend last reported it; read again, at most once a second,
 *     after the statistics
 * @param metrics the figures that only metrics report
 */
public record ModelStatistics(
        ModelVersionTags model,
        ExecutionStatistics executions,
        InferenceTimings inferences,
        List<ResponseStatistics> responses,
        List<MemoryUsage> memory,
        MetricCounters metrics) {
    /** Checks and copies the components. */
    public ModelStatistics {
        requireNonNull(model, "model");
        requireNonNull(executions, "executions");
        requireNonNull(inferences, "inferences");
        responses = List.copyOf(responses);
        memory = List.copyOf(memory);
        requireNonNull(metrics, "metrics");
    }
}
