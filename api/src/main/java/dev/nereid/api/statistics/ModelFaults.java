package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

/**
 * Counts the faults of the backend of a model version, other than overdue executions. Immutable.
 *
 * @param model the model version
 * @param outOfMemory the executions that ended with an {@link OutOfMemoryError}
 * @param changedOutputs the checked outputs that were changed after they had been passed to the server
 * @param plugin the name of the plugin; empty for none
 * @param pluginThreads the platform threads that the plugin has started; 0 while the process has few threads
 */
public record ModelFaults(
        ModelVersionTags model, long outOfMemory, long changedOutputs, String plugin, long pluginThreads) {
    /** Checks the components. */
    public ModelFaults {
        requireNonNull(model, "model");
        requireNonNull(plugin, "plugin");
    }
}
