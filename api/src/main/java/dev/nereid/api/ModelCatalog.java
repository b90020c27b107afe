package dev.nereid.api;

import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.OverdueExecutions;
import inference.ModelConfig;
import java.util.List;

/**
 * Provides metadata, configuration, state and statistics of a server's models. Safe for use by any thread; nothing
 * here blocks.
 *
 * <p>Methods that take a {@link ModelRef} throw {@link InferenceException}:
 * {@link dev.nereid.spi.ErrorCode#NOT_FOUND} if the model or version is not known or no version is ready,
 * {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if the version asked for is not ready.
 */
public interface ModelCatalog {
    /**
     * Describes a model as clients see it.
     *
     * @param model which model
     * @return its description
     */
    ModelMetadata metadata(ModelRef model);

    /**
     * Returns a model's configuration, completed and with every default filled in.
     *
     * @param model which model
     * @return the configuration
     */
    ModelConfig config(ModelRef model);

    /**
     * Returns a model's configuration as JSON with the configuration's own field names.
     *
     * @param model which model
     * @return a JSON object
     */
    String configJson(ModelRef model);

    /**
     * Says whether a version that is loaded can serve, by its backend's own word.
     *
     * @param model which model
     * @return whether every instance says that it is ready
     */
    boolean isReady(ModelRef model);

    /**
     * Lists every version of every model, loaded or not, and models of which there is no version.
     *
     * @return the states, by name and then version
     */
    List<ModelStatus> index();

    /**
     * Tells what every version that is ready has done since it was loaded.
     *
     * @return the statistics, by name and then version
     */
    List<ModelStatistics> statistics();

    /**
     * Tells of the executions of every version that is ready that take longer than its limit.
     *
     * @return the figures, by name and then version; empty by default, for a server that has no such limits
     */
    default List<OverdueExecutions> overdueExecutions() {
        return List.of();
    }

    /**
     * Tells what the versions of one model have done since they were loaded.
     *
     * @param model which version; without one, every version that is ready
     * @return the statistics in rising order of versions, at least one
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if there is none, unlike the other
     *     methods
     */
    List<ModelStatistics> statistics(ModelRef model);
}
