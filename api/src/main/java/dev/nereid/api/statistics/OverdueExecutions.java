package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

import java.util.Map;

/**
 * Counts the executions of a model version that exceed its time limit. Immutable.
 *
 * @param model the model's name
 * @param version the version
 * @param tags what the configuration adds to the labels of metrics: {@code metric_tags}
 * @param now how many are overdue at this moment
 * @param total how many have been since the load
 */
public record OverdueExecutions(String model, long version, Map<String, String> tags, long now, long total) {
    /** Checks and copies the components. */
    public OverdueExecutions {
        requireNonNull(model, "model");
        tags = Map.copyOf(tags);
    }
}
