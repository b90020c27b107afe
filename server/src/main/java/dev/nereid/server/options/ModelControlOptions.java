package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.util.List;

/**
 * Options of loading and unloading while the server runs. Immutable.
 *
 * @param mode when models are loaded and unloaded
 * @param startupModels the models to be loaded at the start in the explicit and in the demand mode, in which they stay
 *     loaded; {@value #ALL} alone for all
 * @param pollInterval the time between two scans of the repository in the poll mode
 * @param stabilityWindow how long the files of a model must not change before the poll mode takes them up, so that a
 *     model that is being copied is left alone
 * @param loadRetries how often the load of a version is tried again
 */
public record ModelControlOptions(
        ModelControlMode mode,
        List<String> startupModels,
        Duration pollInterval,
        Duration stabilityWindow,
        int loadRetries,
        DemandOptions demand) {
    /** Stands for all models. */
    public static final String ALL = "*";

    /** Checks and copies the components. */
    public ModelControlOptions {
        requireNonNull(mode, "mode");
        startupModels = List.copyOf(startupModels);
        requireNonNull(pollInterval, "pollInterval");
        requireNonNull(stabilityWindow, "stabilityWindow");
        requireNonNull(demand, "demand");
        if (!startupModels.isEmpty() && mode != ModelControlMode.EXPLICIT && mode != ModelControlMode.DEMAND) {
            throw new IllegalArgumentException(
                    "startupModels: " + startupModels + " (expected: none unless the mode is EXPLICIT or DEMAND)");
        }
        if (startupModels.contains(ALL) && startupModels.size() > 1) {
            throw new IllegalArgumentException("startupModels: " + startupModels + " (expected: '*' alone, or names)");
        }
        if (!pollInterval.isPositive()) {
            throw new IllegalArgumentException("pollInterval: " + pollInterval + " (expected: > 0)");
        }
        if (stabilityWindow.isNegative()) {
            throw new IllegalArgumentException("stabilityWindow: " + stabilityWindow + " (expected: >= 0)");
        }
        if (loadRetries < 0) {
            throw new IllegalArgumentException("loadRetries: " + loadRetries + " (expected: >= 0)");
        }
    }

    /** Returns whether the model with a name, or every model, is to be loaded at the start. */
    public boolean isStartupModel(String model) {
        return startupModels.contains(model) || startupModels.contains(ALL);
    }
}
