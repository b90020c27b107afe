package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;

/**
 * Loads and unloads models at a client's request. Safe for use by any thread; nothing here blocks.
 *
 * <p>Stages fail with {@link InferenceException} alone, and complete on the thread that did the work.
 */
public interface ModelControl {
    /**
     * Parameters of a request to load a model. Immutable.
     *
     * @param model the model's name; any text
     * @param config a configuration as JSON that replaces the model's own
     * @param files files that replace the files of the model's directory, by path relative to it; read only
     * @param isForced whether a loaded model is loaded again even if nothing of it has changed
     */
    record Load(String model, Optional<String> config, Map<String, ByteBuffer> files, boolean isForced) {
        /** Checks and copies the components. */
        public Load {
            requireNonNull(model, "model");
            requireNonNull(config, "config");
            files = Map.copyOf(files);
        }

        /**
         * Creates a load that is not forced.
         *
         * @param model the model's name; any text
         * @param config a configuration as JSON that replaces the model's own
         * @param files files that replace the files of the model's directory, by path relative to it; read only
         */
        public Load(String model, Optional<String> config, Map<String, ByteBuffer> files) {
            this(model, config, files, false);
        }

        /**
         * Returns the same load, forced.
         *
         * @return a load that loads all versions of the model again, and uses no response that was cached before
         */
        public Load forced() {
            return new Load(model, config, files, true);
        }
    }

    /**
     * Loads a model, or reloads it if it has changed or the load is forced.
     *
     * @param load the parameters of the request
     * @return completed when the model is ready or has failed to load
     */
    CompletionStage<Void> load(Load load);

    /**
     * Unloads a model, if it is loaded.
     *
     * @param model the model's name; any text
     * @param dependents whether models that only this one needed are unloaded too
     * @return completed when the model accepts no more requests; requests in progress end afterwards
     */
    CompletionStage<Void> unload(String model, boolean dependents);

    /**
     * Lists the known models and the models that could be loaded. The latter have no version, and the state
     * {@link ModelStatus.State#UNKNOWN}. Unlike {@link ModelCatalog#index()}, this may read the repository.
     *
     * @return completed with the states, by name and then version
     */
    CompletionStage<List<ModelStatus>> index();
}
