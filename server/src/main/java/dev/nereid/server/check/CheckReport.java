package dev.nereid.server.check;

import static java.util.Objects.requireNonNull;

import dev.nereid.plugin.BackendStatus;
import dev.nereid.repository.config.ConfigProblem;
import inference.ModelConfig;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

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

    /** Returns whether every model can be served, as far as the check can tell. */
    public boolean isValid() {
        return models.stream().allMatch(ModelReport::isValid);
    }

    /**
     * The result of the check of one model. Immutable.
     *
     * @param file the configuration file; the model's directory if there is none
     * @param versions the versions that would be served; empty if they could not be found out
     * @param config the completed configuration of the highest version, as far as it could be completed
     * @param errors why the model cannot be served; empty if it can
     * @param warnings probable mistakes in the model
     */
    public record ModelReport(
            String name,
            Path file,
            List<Long> versions,
            Optional<ModelConfig> config,
            List<ConfigProblem> errors,
            List<String> warnings) {
        public ModelReport {
            requireNonNull(name, "name");
            requireNonNull(file, "file");
            versions = List.copyOf(versions);
            requireNonNull(config, "config");
            errors = List.copyOf(errors);
            warnings = List.copyOf(warnings);
        }

        /** Returns whether the model can be served, as far as the check can tell. */
        public boolean isValid() {
            return errors.isEmpty();
        }

        /** Adds an error without a position. */
        ModelReport withError(String message) {
            List<ConfigProblem> more = new ArrayList<>(errors);
            more.add(ConfigProblem.of(message));
            return new ModelReport(name, file, versions, config, more, warnings);
        }

        /** Adds warnings that it does not have yet, in the order of their texts. Versions of a model may have the same. */
        ModelReport withWarnings(Set<String> added) {
            List<String> more = new ArrayList<>(warnings);
            new TreeSet<>(added)
                    .stream().filter(warning -> !warnings.contains(warning)).forEach(more::add);
            return new ModelReport(name, file, versions, config, errors, more);
        }
    }
}
