package dev.nereid.api.call;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * The models that wait for a request, and the executions in which they do. Immutable.
 *
 * <p>A batch waits on behalf of several requests: its chain has the models of the longest of their chains, and the
 * executions of all.
 *
 * @param models the names of the models that wait for each other, the outermost first
 * @param holds the executions that wait
 */
public record CallChain(List<String> models, List<Hold> holds) {
    /** The chain of a client's request: nothing waits for it but the client. */
    public static final CallChain NONE = new CallChain(List.of(), List.of());

    /** The largest number of models: more of them are a circle that does not end. */
    public static final int MAX_MODELS = 64;

    /** The number of models at either end of a long path that are written. */
    private static final int WRITTEN = 8;

    /** Copies the components. */
    public CallChain {
        models = List.copyOf(models);
        holds = List.copyOf(holds);
    }

    /**
     * Returns whether no model waits.
     *
     * @return whether the chain has no model
     */
    public boolean isEmpty() {
        return models.isEmpty();
    }

    /**
     * Adds a model behind all others.
     *
     * @param model its name
     * @return the longer chain
     */
    public CallChain with(String model) {
        List<String> all = new ArrayList<>(models);
        all.add(model);
        return new CallChain(all, holds);
    }

    /**
     * Adds an execution.
     *
     * @param hold the execution, and the resource that it holds
     * @return the chain with both
     */
    public CallChain with(Hold hold) {
        if (holds.isEmpty()) {
            return new CallChain(models, List.of(hold)); // the usual case
        }
        return holds.contains(hold) ? this : new CallChain(models, union(holds, List.of(hold)));
    }

    /**
     * Joins two chains that lead to the same execution.
     *
     * @param other the other chain
     * @return the longer path with the executions of both
     */
    public CallChain join(CallChain other) {
        if (other.isEmpty() && other.holds.isEmpty()) {
            return this;
        }
        if (isEmpty() && holds.isEmpty()) {
            return other;
        }
        List<String> longer = other.models.size() > models.size() ? other.models : models;
        return new CallChain(longer, union(holds, other.holds));
    }

    private static List<Hold> union(List<Hold> first, List<Hold> second) {
        Set<Hold> all = new LinkedHashSet<>(first);
        all.addAll(second);
        return List.copyOf(all);
    }

    /**
     * Returns the path to a model, as in error messages.
     *
     * @param target the name of the model that is to get the request
     * @return the names, like {@code a -> b -> a}; the middle of a long path is left out
     */
    public String path(String target) {
        List<String> names = new ArrayList<>(models);
        names.add(target);
        if (names.size() > 2 * WRITTEN) {
            List<String> ends = new ArrayList<>(names.subList(0, WRITTEN));
            ends.add("...");
            ends.addAll(names.subList(names.size() - WRITTEN, names.size()));
            names = ends;
        }
        return String.join(" -> ", names);
    }
}
