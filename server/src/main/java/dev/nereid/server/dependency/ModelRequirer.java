package dev.nereid.server.dependency;

import dev.nereid.api.InferenceException;
import java.util.List;

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
     * Finds the required models that are not ready. Never blocks.
     *
     * @return their names; empty if all are ready
     */
    default List<String> unready() {
        return List.of();
    }
}
