package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

/**
 * Counts and durations of the executions of one batch size. Immutable.
 *
 * @param batchSize the number of items in the batch
 * @param computeInput executions: preparing inputs
 * @param computeInfer the same executions: computing
 * @param computeOutput the same executions: giving outputs back
 */
public record BatchStatistics(long batchSize, Timing computeInput, Timing computeInfer, Timing computeOutput) {
    /** Checks the components. */
    public BatchStatistics {
        requireNonNull(computeInput, "computeInput");
        requireNonNull(computeInfer, "computeInfer");
        requireNonNull(computeOutput, "computeOutput");
    }
}
