package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

/**
 * Counts and durations of the executions of one batch size. Immutable.
 *
 * @param batchSize the number of items in the batch
 * @param compute the executions, by phase
 */
public record BatchStatistics(long batchSize, ComputeTimings compute) {
    /** Checks the components. */
    public BatchStatistics {
        requireNonNull(compute, "compute");
    }
}
