package dev.nereid.server.control;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The keys of models that were unloaded, the latest ones. Safe for use by any thread; never blocks for long.
 *
 * <p>The catalog shows unloaded models, also ones that lie in no repository any more, so that their number has a limit.
 */
final class UnloadedModels {
    private final int max;
    private final ReentrantLock lock = new ReentrantLock();

    /** The keys in the order of their unloads. */
    @GuardedBy("lock")
    private final LinkedHashSet<String> keys = new LinkedHashSet<>();

    /** Creates an empty set for at most so many keys. */
    UnloadedModels(int max) {
        this.max = max;
    }

    /**
     * Adds a model as the latest one.
     *
     * @return the key of the oldest one, if there were too many and it was removed
     */
    Optional<String> add(String key) {
        lock.lock();
        try {
            keys.remove(key);
            keys.add(key);
            return keys.size() > max ? Optional.of(keys.removeFirst()) : Optional.empty();
        } finally {
            lock.unlock();
        }
    }

    /** Removes a model that is loaded again. */
    void remove(String key) {
        lock.lock();
        try {
            keys.remove(key);
        } finally {
            lock.unlock();
        }
    }
}
