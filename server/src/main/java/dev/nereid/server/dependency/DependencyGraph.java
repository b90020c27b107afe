package dev.nereid.server.dependency;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * A graph of models that need other models, such as ensembles with their steps. Immutable.
 *
 * <p>A needed model need not be known: a model outside the graph needs nothing.
 */
final class DependencyGraph {
    static final DependencyGraph EMPTY = new DependencyGraph(Map.of());

    private final Map<String, Set<String>> needs;

    private DependencyGraph(Map<String, Set<String>> needs) {
        this.needs = Map.copyOf(needs);
    }

    /**
     * Adds a model, or replaces its needed models.
     *
     * @param model the model's name
     * @param needed the models that it needs itself
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if models would need each other
     */
    DependencyGraph with(String model, Collection<String> needed) {
        return with(model, needed, "ensembles");
    }

    /**
     * Adds a model as {@link #with(String, Collection)} does.
     *
     * @param kind the kind of models that would need each other, for the error
     */
    DependencyGraph with(String model, Collection<String> needed, String kind) {
        Map<String, Set<String>> changed = new HashMap<>(needs);
        changed.put(model, Set.copyOf(needed));
        DependencyGraph graph = new DependencyGraph(changed);
        graph.checkCycle(kind, model, new ArrayList<>(List.of(model)), new TreeSet<>());
        return graph;
    }

    /** Removes a model, which others may still need. */
    DependencyGraph without(String model) {
        if (!needs.containsKey(model)) {
            return this;
        }
        Map<String, Set<String>> changed = new HashMap<>(needs);
        changed.remove(model);
        return new DependencyGraph(changed);
    }

    private void checkCycle(String kind, String start, List<String> path, Set<String> seen) {
        for (String next : needed(path.getLast())) {
            path.add(next);
            if (next.equals(start)) {
                throw new InferenceException(
                        ErrorCode.INVALID_ARGUMENT,
                        "circular dependency between " + kind + ": " + String.join(" -> ", path));
            }
            if (seen.add(next)) {
                checkCycle(kind, start, path, seen);
            }
            path.removeLast();
        }
    }

    /** Returns the models that need others, in the order of their keys. */
    List<String> models() {
        return List.copyOf(new TreeSet<>(needs.keySet()));
    }

    /** Returns the models that a model needs itself, in the order of their keys. */
    Set<String> needed(String model) {
        return new TreeSet<>(needs.getOrDefault(model, Set.of()));
    }

    /** Returns a model and all that it needs. Each comes after the models that it needs directly. */
    List<String> loadOrder(String model) {
        Set<String> order = new LinkedHashSet<>();
        addNeeded(model, order);
        return List.copyOf(order);
    }

    private void addNeeded(String model, Set<String> order) {
        if (!order.contains(model)) {
            needed(model).forEach(next -> addNeeded(next, order));
            order.add(model);
        }
    }

    /**
     * Returns all models that need a model, in the order of their unloads: each before the models that it needs
     * directly.
     */
    List<String> dependents(String model) {
        Set<String> order = new LinkedHashSet<>();
        addDependents(model, order);
        order.remove(model);
        return List.copyOf(order);
    }

    private void addDependents(String model, Set<String> order) {
        if (!order.contains(model)) {
            for (String other : new TreeSet<>(needs.keySet())) {
                if (needed(other).contains(model)) {
                    addDependents(other, order);
                }
            }
            order.add(model);
        }
    }

    /**
     * Returns the models that only a model needed, directly or not. They are unloaded together with it.
     *
     * @param model the model's name
     * @param kept the models that were loaded for their own sake
     * @return their names, each before the models that it needs directly
     */
    List<String> neededOnlyBy(String model, Set<String> kept) {
        Set<String> unused = new LinkedHashSet<>(List.of(model));
        List<String> candidates = loadOrder(model).reversed(); // each before the models that it needs
        for (String candidate : candidates) {
            boolean isUnused = needs.keySet().stream()
                    .filter(other -> needed(other).contains(candidate))
                    .allMatch(unused::contains);
            if (isUnused && !kept.contains(candidate)) {
                unused.add(candidate);
            }
        }
        unused.remove(model);
        return List.copyOf(unused);
    }
}
