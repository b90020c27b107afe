package dev.nereid.scheduler.ensemble;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;

/**
 * The steps of one request in one state, in no order. Confined to its {@code EnsembleRun}.
 *
 * <p>Each step has its place in the set, and is in one set at most; so removal takes constant time and allocates nothing.
 */
final class StepSet<T extends StepSet.Member> {
    /** A step that stores its place in a set. */
    interface Member {
        void placed(Object owner, int index);

        /** Called when it is in no set any more. */
        void removed();

        boolean isIn(Object set);

        int place();
    }

    private final List<T> steps = new ArrayList<>(0);

    boolean isEmpty() {
        return steps.isEmpty();
    }

    /** Adds a step that is in no set. */
    void add(T step) {
        step.placed(this, steps.size());
        steps.add(step);
    }

    /** Removes a step; returns whether it was in this set. */
    boolean remove(T step) {
        if (!step.isIn(this)) {
            return false;
        }
        T last = steps.removeLast();
        if (step.place() < steps.size()) {
            last.placed(this, step.place());
            steps.set(step.place(), last);
        }
        step.removed();
        return true;
    }

    /** Calls an action with each step; it must not change the set. */
    void forEach(Consumer<T> action) {
        steps.forEach(action);
    }

    void removeIf(Predicate<T> condition) {
        for (int i = steps.size() - 1; i >= 0; i--) { // the last one takes the place of a removed one
            T step = steps.get(i);
            if (condition.test(step)) {
                remove(step);
            }
        }
    }
}
