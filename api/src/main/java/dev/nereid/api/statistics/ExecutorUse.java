package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

/**
 * Counts the threads on which the server runs tasks of a model version beside its executions. Immutable.
 *
 * @param model the model version
 * @param threads the threads at this moment, idle ones included
 * @param waiting the tasks that wait for a thread
 */
public record ExecutorUse(ModelVersionTags model, int threads, int waiting) {
    /** Checks the components. */
    public ExecutorUse {
        requireNonNull(model, "model");
    }
}
