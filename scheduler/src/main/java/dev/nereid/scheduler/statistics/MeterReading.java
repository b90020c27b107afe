package dev.nereid.scheduler.statistics;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.api.statistics.MicrosCounters;
import dev.nereid.api.statistics.ResponseStatistics;
import java.util.List;
import java.util.Map;

/**
 * A snapshot of the statistics of a model. Immutable.
 *
 * @param executions the numbers of executions and of their items
 * @param inferences where requests spent their time
 * @param batches the executions by their batch sizes, in rising order
 * @param responses the responses that backends reported, by their places in their requests
 * @param failures how many requests failed for which reason, without the reasons for which none did
 * @param micros the durations of requests as metrics tell them
 */
public record MeterReading(
        ExecutionCounts executions,
        InferenceTimings inferences,
        List<BatchStatistics> batches,
        List<ResponseStatistics> responses,
        Map<FailureReason, Long> failures,
        MicrosCounters micros) {
    /** Checks and copies the components. */
    public MeterReading {
        requireNonNull(executions, "executions");
        requireNonNull(inferences, "inferences");
        batches = List.copyOf(batches);
        responses = List.copyOf(responses);
        failures = Map.copyOf(failures);
        requireNonNull(micros, "micros");
    }

    /**
     * The numbers of executions and of their items. Immutable.
     *
     * @param lastInferenceMillis when the last execution ended, in milliseconds since the epoch; 0 if there was none
     * @param inferenceCount the items of all requests that were executed successfully
     * @param executionCount the number of executed batches
     */
    public record ExecutionCounts(long lastInferenceMillis, long inferenceCount, long executionCount) {}

    /** Returns when the last execution ended, in milliseconds since the epoch; 0 if there was none. */
    public long lastInferenceMillis() {
        return executions.lastInferenceMillis();
    }

    /** Returns the items of all requests that were executed successfully. */
    public long inferenceCount() {
        return executions.inferenceCount();
    }

    /** Returns the number of executed batches. */
    public long executionCount() {
        return executions.executionCount();
    }
}
