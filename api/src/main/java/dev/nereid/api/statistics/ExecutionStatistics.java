package dev.nereid.api.statistics;

import java.util.List;

/**
 * Counts of the executions of a model version. Immutable.
 *
 * @param lastInferenceMillis the end of the last execution, in milliseconds since the epoch; 0 if there was none
 * @param inferenceCount the items of all requests that were executed successfully
 * @param executionCount the number of executed batches
 * @param batches the executions by their batch sizes, in rising order
 */
public record ExecutionStatistics(
        long lastInferenceMillis, long inferenceCount, long executionCount, List<BatchStatistics> batches) {
    /** Copies the components. */
    public ExecutionStatistics {
        batches = List.copyOf(batches);
    }
}
