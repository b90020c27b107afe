package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.repository.ModelKey;
import dev.nereid.spi.ErrorCode;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Finds the models of a name where a server has namespaces. Lock-free; safe for use by any thread.
 *
 * <p>Without namespaces it is empty.
 */
final class ModelNames {
    private final Map<String, ModelEntry> entries;

    /** The keys by the names; sets are replaced as a whole. */
    private final ConcurrentHashMap<String, Set<String>> keys = new ConcurrentHashMap<>();

    /** Creates an empty index of entries by their keys, which are safe for use by any thread. */
    ModelNames(Map<String, ModelEntry> entries) {
        this.entries = entries;
    }

    /** Adds or removes the name of a model, by whether the model has an entry. */
    void changed(String key) {
        if (ModelKey.namespace(key).isEmpty()) {
            return;
        }
        keys.compute(ModelKey.name(key), (_, before) -> {
            Set<String> changed = new TreeSet<>(before == null ? Set.of() : before);
            if (entries.containsKey(key)) { // read here, so that the last call sees the last change
                changed.add(key);
            } else {
                changed.remove(key);
            }
            return changed.isEmpty() ? null : Set.copyOf(changed);
        });
    }

    Set<String> keys(String name) {
        return new TreeSet<>(keys.getOrDefault(name, Set.of()));
    }

    /**
     * Finds the model that clients mean by a name. Models that were unloaded do not count if there are others.
     *
     * @return its key; empty if there is none
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if there are several
     */
    Optional<String> key(String name) {
        Optional<String> unloaded = Optional.empty();
        Optional<String> found = Optional.empty();
        int count = 0;
        for (String key : keys.getOrDefault(name, Set.of())) {
            ModelEntry entry = entries.get(key);
            if (entry != null && entry.isUnloaded()) {
                unloaded = Optional.of(key);
            } else if (entry != null) {
                found = Optional.of(key);
                count++;
            }
        }
        if (count > 1) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "There are " + count + " identifiers of model '" + Quoted.text(name)
                            + "' in global map, model namespace must be provided to resolve ambiguity.");
        }
        return found.isPresent() ? found : unloaded;
    }
}
