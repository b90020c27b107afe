package dev.nereid.server.dependency;

import dev.nereid.api.InferenceException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Loads the models that one model requires. Safe for use by any thread. */
public interface ModelRequirer {
    /** Loads nothing, as for a completion without a load. */
    ModelRequirer NONE = _ -> true;

    /**
     * Waits until a model serves, which is loaded if it does not.
     *
     * @param name the name of the model, as the plugin says it
     * @return whether it is another model
     * @throws InferenceException if it cannot be loaded, or must not be required
     * @throws IllegalStateException if the calling thread must not wait
     */
    boolean require(String name);

    /**
     * Finds the required models that do not leave the server ready. Instances that are unavailable for a while count as
     * ready. Never blocks.
     *
     * @return their names; empty if all leave it ready
     */
    default List<String> failed() {
        return List.of();
    }

    /**
     * Finds the required models that cannot serve now. Never blocks; the stage completes within seconds, on any thread.
     *
     * @return their names; empty if all can serve
     */
    default CompletionStage<List<String>> checkReady() {
        return CompletableFuture.completedStage(List.of());
    }
}
