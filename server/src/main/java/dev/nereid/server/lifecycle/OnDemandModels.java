package dev.nereid.server.lifecycle;

import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The models that are loaded on demand, loaded or not. Empty in other control modes. Lock-free for readers; a model is
 * changed by one control task at a time.
 */
public final class OnDemandModels {
    private final ConcurrentHashMap<String, OnDemandModel> models = new ConcurrentHashMap<>();

    /** Returns a model, or {@code null} if it is not loaded on demand. */
    @Nullable
    OnDemandModel find(String key) {
        return models.get(key);
    }

    /**
     * Lets a model be loaded on demand from now on, or replaces what is known of it.
     *
     * @param model the model
     */
    public void add(OnDemandModel model) {
        models.put(model.key(), model);
    }

    /**
     * Lets a model not be loaded on demand any more.
     *
     * @param key its key
     */
    public void remove(String key) {
        models.remove(key);
    }

    /**
     * Returns whether a model is loaded on demand.
     *
     * @param key its key
     * @return whether requests load it
     */
    public boolean contains(String key) {
        return models.containsKey(key);
    }

    /**
     * Returns whether a model is never evicted.
     *
     * @param key its key
     * @return whether it is loaded on demand, and pinned
     */
    public boolean isPinned(String key) {
        OnDemandModel model = models.get(key);
        return model != null && model.isPinned();
    }
}
