package dev.nereid.server.check;

import dev.nereid.plugin.BackendStatus;
import java.util.List;

/**
 * The result of a check of model repositories. Immutable.
 *
 * @param backends the installed backends and broken plugins
 * @param models the models of all repositories, by name
 * @param warnings probable mistakes that belong to no model
 */
public record CheckReport(List<BackendStatus> backends, List<ModelReport> models, List<String> warnings) {
    public CheckReport {
        backends = List.copyOf(backends);
        models = List.copyOf(models);
        warnings = List.copyOf(warnings);
    }

    /**
     * Returns whether every model can be served, as far as the check can tell.
     *
     * @return {@code true} if no model has an error
     */
    public boolean isValid() {
        return models.stream().allMatch(ModelReport::isValid);
    }
}
