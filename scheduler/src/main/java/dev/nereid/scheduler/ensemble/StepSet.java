package dev.nereid.scheduler.ensemble;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;

/**
 * The steps of one request in one state, in no order. Confined to its {@link EnsembleRun}.
 *
 * <p>Each step has its place in the set, and is in one set at most; so removal takes constant time and allocates nothing.
 */
final class StepSet {
    private final List<StepExecution> steps = new ArrayList<>(0);

    boolean isEmpty() {
        return steps.isEmpty();
    }

    /** Adds a step that is in no set. */
    void add(StepExecution step) {
        step.placed(this, steps.size());
        steps.add(step);
    }

    /** Removes a step; returns whether it was in this set. */
    boolean remove(StepExecution step) {
        if (!step.isIn(this)) {
            return false;
        }
        StepExecution last = steps.removeLast();
        if (step.place() < steps.size()) {
            last.placed(this, step.place());
            steps.set(step.place(), last);
        }
        step.removed();
        return true;
    }

    /** Calls an action with each step; it must not change the set. */
    void forEach(Consumer<StepExecution> action) {
        steps.forEach(action);
    }

    /** Removes the steps for which a condition holds. */
    void removeIf(Predicate<StepExecution> condition) {
        for (int i = steps.size() - 1; i >= 0; i--) { // the last one takes the place of a removed one
            StepExecution step = steps.get(i);
            if (condition.test(step)) {
                remove(step);
            }
        }
    }
}
