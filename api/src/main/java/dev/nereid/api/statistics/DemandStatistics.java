package dev.nereid.api.statistics;

import java.util.Map;

/**
 * Counts and memory of models that are loaded on demand. Immutable.
 *
 * @param memoryBudget the bytes that models may take together; 0 for no limit
 * @param memory the bytes that each model takes of the budget, or that are reserved for its load, by its name; without
 *     models that take none
 * @param loads the number of loads that requests caused
 * @param evictions the number of models that were unloaded for others
 * @param waiting the number of requests that wait for loads
 */
public record DemandStatistics(long memoryBudget, Map<String, Long> memory, long loads, long evictions, int waiting) {
    /** Copies the components. */
    public DemandStatistics {
        memory = Map.copyOf(memory);
    }
}
