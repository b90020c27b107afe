package dev.nereid.server.demand;

import java.util.List;
import java.util.concurrent.CompletionStage;

/** Loads and evicts models, as the planner has decided. Safe for use by any thread; nothing here blocks. */
public interface ModelActions {
    /**
     * Loads a model, unless it is loaded.
     *
     * @param model its key
     * @return completed when it serves; fails with {@link dev.nereid.api.InferenceException} if it does not
     */
    CompletionStage<Void> load(String model);

    /** Returns the keys of the models that have to be loaded together: a requested one, and the ones that it needs. */
    default List<String> group(String model) {
        return List.of(model);
    }

    /** Unloads a model, unless something uses it; tells whether it did. Memory is free when its generations are closed. */
    CompletionStage<Boolean> evict(String model);

    /** Returns how loaded models are used at this moment, in no order. */
    List<ModelUse> uses();

    /**
     * Begins to ask how much memory a loaded model takes, at most once a second. A change is {@linkplain
     * DemandModels#resized reported} later.
     *
     * @param model its key
     */
    void refreshMemory(String model);

    /**
     * How a loaded model is used at a moment. Immutable.
     *
     * @param usedNanos when it was last used, on the scale of {@link System#nanoTime()}
     */
    record ModelUse(String key, long usedNanos, boolean isIdle) {
        /** Merges the use of another generation of the same model: the later of the two; idle if both are. */
        public ModelUse with(ModelUse other) {
            return new ModelUse(
                    key, usedNanos - other.usedNanos() > 0 ? usedNanos : other.usedNanos(), isIdle && other.isIdle());
        }
    }
}
