package dev.nereid.server.lifecycle;

import dev.nereid.repository.ModelKey;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
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

    /** Adds a model that is loaded on demand from now on, or replaces its description. */
    public void add(OnDemandModel model) {
        models.put(model.key(), model);
    }

    /** Removes a model, which is not loaded on demand any more. */
    public void remove(String key) {
        models.remove(key);
    }

    /** Returns whether a model is loaded on demand, by requests. */
    public boolean contains(String key) {
        return models.containsKey(key);
    }

    /** Returns the keys of a model and of the models on demand that it needs, directly or not; its own first. */
    public List<String> withNeeded(String key) {
        Set<String> found = new LinkedHashSet<>(List.of(key));
        Deque<String> open = new ArrayDeque<>(found);
        for (String next = open.poll(); next != null; next = open.poll()) {
            OnDemandModel model = models.get(next);
            if (model != null) {
                for (String needed : model.needed()) {
                    String of = find(ModelKey.namespace(next), needed);
                    if (of != null && found.add(of)) {
                        open.add(of);
                    }
                }
            }
        }
        return List.copyOf(found);
    }

    /** Finds a model by its name, in a namespace first. */
    private @Nullable String find(String namespace, String name) {
        String own = namespace.isEmpty() ? name : ModelKey.of(namespace, name);
        if (models.containsKey(own)) {
            return own;
        }
        return models.keySet().stream()
                .filter(key -> ModelKey.name(key).equals(name))
                .findFirst()
                .orElse(null);
    }

    /** Returns whether a model is loaded on demand, and never evicted. */
    public boolean isPinned(String key) {
        OnDemandModel model = models.get(key);
        return model != null && model.isPinned();
    }
}
