package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

import java.util.Map;

/**
 * A model version and its labels in metrics. Immutable.
 *
 * @param name the model's name
 * @param version the version
 * @param tags the additional labels of the configuration: {@code metric_tags}
 */
public record ModelVersionTags(String name, long version, Map<String, String> tags) {
    /** Checks and copies the components. */
    public ModelVersionTags {
        requireNonNull(name, "name");
        tags = Map.copyOf(tags);
    }
}
