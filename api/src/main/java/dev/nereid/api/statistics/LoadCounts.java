package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

import java.time.Duration;

/**
 * Counts the loads and unloads of a model since the start of the server, all versions together. Immutable.
 *
 * @param model the model's name
 * @param loads the number of versions that were loaded
 * @param failures the number of loads that failed
 * @param unloads the number of versions that were unloaded, also by a reload
 * @param loadTime the time of the loads that did not fail
 */
public record LoadCounts(String model, long loads, long failures, long unloads, Duration loadTime) {
    /** Checks the components. */
    public LoadCounts {
        requireNonNull(model, "model");
        requireNonNull(loadTime, "loadTime");
    }
}
