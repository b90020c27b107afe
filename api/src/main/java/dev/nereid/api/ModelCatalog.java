package dev.nereid.api;

import dev.nereid.api.statistics.ExecutorUse;
import dev.nereid.api.statistics.HeldResponses;
import dev.nereid.api.statistics.LoadCounts;
import dev.nereid.api.statistics.ModelFaults;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.OverdueControl;
import dev.nereid.api.statistics.OverdueExecutions;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Provides metadata, configuration, state and statistics of a server's models. Safe for use by any thread; nothing
 * here blocks.
 *
 * <p>Methods that take a {@link ModelRef} throw {@link InferenceException}:
 * {@link dev.nereid.spi.ErrorCode#NOT_FOUND} if the model or version is not known or no version is ready,
 * {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} if the requested version is not ready.
 */
public interface ModelCatalog {
    /**
     * Returns the metadata of a model.
     *
     * @param model the model
     * @return its metadata
     */
    ModelMetadata metadata(ModelRef model);

    /**
     * Returns a model's configuration, completed and with all defaults.
     *
     * @param model the model
     * @return the configuration
     */
    ModelConfig config(ModelRef model);

    /**
     * Returns a model's configuration as JSON with the configuration's own field names.
     *
     * @param model the model
     * @return a JSON object
     */
    String configJson(ModelRef model);

    /**
     * Readiness of a version, with the reason if it cannot serve. Immutable.
     *
     * @param isReady whether it can serve
     * @param code the kind of the reason
     * @param reason the report of its instances; empty if it can serve, or if they report nothing
     */
    record Readiness(boolean isReady, ErrorCode code, String reason) {
        /** It can serve. */
        public static final Readiness READY = new Readiness(true, ErrorCode.UNKNOWN, "");

        /** It cannot serve, for a reason that no instance reports. */
        public static final Readiness NOT_READY = notReady(ErrorCode.UNAVAILABLE, "");

        /**
         * Creates the readiness of a version that cannot serve.
         *
         * @param code the kind of the reason
         * @param reason the reason
         * @return the readiness
         */
        public static Readiness notReady(ErrorCode code, String reason) {
            return new Readiness(false, code, reason);
        }
    }

    /**
     * Returns whether a loaded version can serve, as far as that is known: the check of an instance that takes longer
     * counts with its last result.
     *
     * @param model the model
     * @return whether at least one instance is ready
     */
    boolean isReady(ModelRef model);

    /**
     * Checks whether a loaded version can serve. Never blocks.
     *
     * @param model the model
     * @return completes within seconds, on any thread; fails with {@link InferenceException} if the version is not loaded
     */
    default CompletionStage<Readiness> checkReady(ModelRef model) {
        try {
            return CompletableFuture.completedStage(isReady(model) ? Readiness.READY : Readiness.NOT_READY);
        } catch (InferenceException e) {
            return CompletableFuture.failedStage(e);
        }
    }

    /**
     * Lists every version of every model, loaded or not, and models without versions.
     *
     * @return the states, by name and then version
     */
    List<ModelStatus> index();

    /**
     * Returns the statistics of every ready version since its load.
     *
     * @return the statistics, by name and then version
     */
    List<ModelStatistics> statistics();

    /**
     * Returns the overdue executions of every ready version.
     *
     * @return the figures, by name and then version; empty by default, for servers without time limits of executions
     */
    default List<OverdueExecutions> overdueExecutions() {
        return List.of();
    }

    /**
     * Returns the loads and closes that take longer than their limit.
     *
     * @return the figures, by name, version and kind; empty by default, for servers without time limits of loads
     */
    default List<OverdueControl> overdueControl() {
        return List.of();
    }

    /**
     * Returns the faults of the backends of every ready version.
     *
     * @return the figures, by name and then version; empty by default
     */
    default List<ModelFaults> faults() {
        return List.of();
    }

    /**
     * Returns the threads for tasks of every ready version that had such tasks.
     *
     * @return the figures, by name and then version; empty by default
     */
    default List<ExecutorUse> executors() {
        return List.of();
    }

    /**
     * Returns the responses that every version holds which has sent requests to other models, replaced loads of it included.
     *
     * @return the figures, by name and then version; empty by default
     */
    default List<HeldResponses> heldResponses() {
        return List.of();
    }

    /**
     * Returns the sequences of every ready version of models with sequences. Sequences that stay on an earlier
     * generation of the version are counted, too.
     *
     * @return the figures, by name and then version; empty by default, for servers without sequences
     */
    default List<SequenceStatistics> sequences() {
        return List.of();
    }

    /**
     * Returns how often each model was loaded and unloaded.
     *
     * @return the figures, by name; empty by default, for servers that load all models at the start
     */
    default List<LoadCounts> loadCounts() {
        return List.of();
    }

    /**
     * Returns the statistics of the versions of one model since their load.
     *
     * @param model the model and version; without a version, every ready one
     * @return the statistics in rising order of versions, at least one
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if there is none, unlike the other
     *     methods
     */
    List<ModelStatistics> statistics(ModelRef model);
}
