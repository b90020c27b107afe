package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

/**
 * Counts the executions of a model version that exceed its time limit. Immutable.
 *
 * @param model the model version
 * @param now the number of executions that exceed it at this moment
 * @param total the number of executions that exceeded it since the load
 */
public record OverdueExecutions(ModelVersionTags model, long now, long total) {
    /** Checks the components. */
    public OverdueExecutions {
        requireNonNull(model, "model");
    }
}
