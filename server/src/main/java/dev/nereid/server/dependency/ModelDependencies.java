package dev.nereid.server.dependency;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelKey;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Knows which models need which others, and why each is loaded. Safe for use by any thread; never blocks for long.
 *
 * <p>Models are known by their keys. A model is loaded because it was requested, or because a requested one needs it. When a model is unloaded, the
 * models that need it are unloaded first, and wait until it is loaded again.
 */
public final class ModelDependencies {
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private DependencyGraph graph = DependencyGraph.EMPTY;

    /** The models that were loaded for their own sake. */
    @GuardedBy("lock")
    private final Set<String> requested = new HashSet<>();

    /** The models that were unloaded because one that they need was. */
    @GuardedBy("lock")
    private final Set<String> waiting = new HashSet<>();

    /** The loads in progress, by the keys of their models. */
    @GuardedBy("lock")
    private final Map<String, Load> loading = new HashMap<>();

    /**
     * A load in progress. Immutable.
     *
     * @param needed the models that it needs if the load succeeds
     * @param waited whether it waited for another model
     */
    private record Load(Set<String> before, Set<String> needed, boolean waited) {}

    /**
     * The models that are unloaded with a model. Immutable.
     *
     * @param before the models that need it, in the order of their unloads, all before its own
     * @param after the models that nothing needs any more, in the order of their unloads, all after its own
     */
    public record Unloads(List<String> before, List<String> after) {
        public Unloads {
            before = List.copyOf(before);
            after = List.copyOf(after);
        }
    }

    /** Records that a model is loaded for its own sake. */
    public void request(String model) {
        lock.lock();
        try {
            requested.add(model);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Records the models that a model needs, at the beginning of its load. Until the {@link #end} it needs the former ones
     * too, since it may serve with them. The loads of one model follow one another.
     *
     * @param model its key
     * @param needed the keys of the models that it needs itself
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if models would need each other;
     *     nothing has changed then
     */
    public void begin(String model, Collection<String> needed) {
        lock.lock();
        try {
            Set<String> before = graph.needed(model);
            Set<String> both = new HashSet<>(before);
            both.addAll(needed);
            graph = both.isEmpty() ? graph.without(model) : graph.with(model, both);
            loading.put(model, new Load(before, Set.copyOf(needed), waiting.remove(model)));
        } finally {
            lock.unlock();
        }
    }

    /**
     * Records a model that another one requires, during the load of that.
     *
     * @param model the key of the model that is loaded
     * @param other the key of the model that it requires
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if models would need each other; nothing
     *     has changed then
     */
    public void require(String model, String other) {
        lock.lock();
        try {
            Load load = loading.get(model);
            if (load == null) {
                throw new IllegalStateException("model '" + model + "' requires '" + other + "' outside of a load");
            }
            graph = graph.with(model, with(graph.needed(model), other), "models");
            loading.put(model, new Load(load.before(), with(load.needed(), other), load.waited()));
        } finally {
            lock.unlock();
        }
    }

    private static Set<String> with(Set<String> models, String other) {
        Set<String> changed = new HashSet<>(models);
        changed.add(other);
        return Set.copyOf(changed);
    }

    /**
     * Records the models that a model requires from now on, before the {@link #end} of a load that succeeds.
     * Requirements of versions that serve no more do not count.
     *
     * @param model its key
     * @param required the keys of the models that its versions require
     */
    public void settle(String model, Collection<String> required) {
        lock.lock();
        try {
            Load load = loading.get(model);
            if (load != null) {
                Set<String> needed = new HashSet<>(required);
                needed.retainAll(graph.needed(model)); // among others there may be a cycle
                loading.put(model, new Load(load.before(), Set.copyOf(needed), load.waited()));
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Records the end of a load. A model that waited for another one and was not loaded waits again.
     *
     * @param model its key
     * @param isLoaded whether it was loaded, or the load found no change
     */
    public void end(String model, boolean isLoaded, boolean serves) {
        lock.lock();
        try {
            Load load = loading.remove(model);
            if (load == null) {
                return; // it failed before its beginning
            }
            Set<String> needed = !isLoaded && serves ? load.before() : load.needed();
            graph = needed.isEmpty() ? graph.without(model) : graph.with(model, needed);
            if (!isLoaded && !serves && load.waited()) {
                waiting.add(model);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Returns the keys of the models that a model needs itself, as of its last load. */
    public Set<String> needed(String model) {
        lock.lock();
        try {
            Load load = loading.get(model);
            return load == null ? graph.needed(model) : new TreeSet<>(load.needed());
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns the models that need a model of the same name from another namespace, and may need this one now. These
     * are the models of this namespace, which they search first, and the models that wait for the other one.
     *
     * @param model the key of a model that was loaded
     * @return their keys
     */
    public List<String> withSubstituteOf(String model) {
        String namespace = ModelKey.namespace(model);
        if (namespace.isEmpty()) {
            return List.of();
        }
        lock.lock();
        try {
            List<String> found = new ArrayList<>();
            for (String other : graph.models()) {
                boolean mayNeedIt = ModelKey.namespace(other).equals(namespace) || waiting.contains(other);
                if (mayNeedIt && needsSubstitute(graph.needed(other), model)) {
                    found.add(other);
                }
            }
            return found;
        } finally {
            lock.unlock();
        }
    }

    private static boolean needsSubstitute(Set<String> needed, String model) {
        return needed.stream()
                .anyMatch(other -> !other.equals(model) && ModelKey.name(other).equals(ModelKey.name(model)));
    }

    /** Returns whether a model was unloaded because one that it needs was, and is to be loaded again. */
    public boolean isWaiting(String model) {
        lock.lock();
        try {
            return waiting.contains(model);
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether a model needs others: an ensemble that began to load, or a model that requires models. */
    public boolean isEnsemble(String model) {
        lock.lock();
        try {
            return graph.loadOrder(model).size() > 1;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the models, the needed first, that need one which was loaded, and were unloaded with it before. */
    public List<String> waitingFor(String model) {
        lock.lock();
        try {
            List<String> found = new ArrayList<>(graph.dependents(model));
            found.retainAll(waiting);
            return found.reversed(); // each after the models that it needs
        } finally {
            lock.unlock();
        }
    }

    /** Returns the models that need a model, directly or not, each after the models that it needs directly. */
    public List<String> dependents(String model) {
        lock.lock();
        try {
            return graph.dependents(model).reversed();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Records that a model is unloaded for its own sake.
     *
     * @param model its key
     * @param withNeeded whether models that only it needed are unloaded too
     */
    public Unloads unload(String model, boolean withNeeded) {
        lock.lock();
        try {
            requested.remove(model);
            waiting.remove(model);
            List<String> before = graph.dependents(model);
            waiting.addAll(before);
            List<String> after = withNeeded ? graph.neededOnlyBy(model, requested) : List.of();
            graph = graph.without(model);
            return new Unloads(before, after);
        } finally {
            lock.unlock();
        }
    }

    /** Records that a model is unloaded because nothing needs it any more, unless that has changed. */
    public boolean unloadUnused(String model) {
        lock.lock();
        try {
            boolean isUnused =
                    !requested.contains(model) && graph.dependents(model).isEmpty();
            if (isUnused) {
                graph = graph.without(model);
            }
            return isUnused;
        } finally {
            lock.unlock();
        }
    }
}
