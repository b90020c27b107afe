package dev.nereid.scheduler.ensemble;

import static java.util.Objects.requireNonNull;

import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The steps of one request in one state, in the order in which they came to it. Confined to its {@link EnsembleRun}.
 *
 * <p>The steps themselves have the links: a step is in one set at most, and adding or removing it allocates nothing.
 */
final class StepSet {
    private @Nullable StepExecution first;
    private @Nullable StepExecution last;

    boolean isEmpty() {
        return first == null;
    }

    /** Adds a step that is in no set. */
    void add(StepExecution step) {
        step.set = this;
        step.previous = last;
        step.next = null;
        if (last == null) {
            first = step;
        } else {
            last.next = step;
        }
        last = step;
    }

    /** Removes a step; returns whether it was in this set. */
    @SuppressWarnings("ReferenceEquality") // Sets are mutable.
    boolean remove(StepExecution step) {
        if (step.set != this) {
            return false;
        }
        StepExecution before = step.previous;
        StepExecution after = step.next;
        if (before == null) {
            first = after;
        } else {
            before.next = after;
        }
        if (after == null) {
            last = before;
        } else {
            after.previous = before;
        }
        step.set = null;
        step.previous = null;
        step.next = null;
        return true;
    }

    /** Calls an action with each step; it must not change the set. */
    void forEach(Consumer<StepExecution> action) {
        for (StepExecution step = first; step != null; step = step.next) {
            action.accept(step);
        }
    }

    /** Removes the steps for which a condition holds. */
    void removeIf(Predicate<StepExecution> condition) {
        StepExecution step = first;
        while (step != null) {
            StepExecution after = step.next;
            if (condition.test(step)) {
                remove(requireNonNull(step));
            }
            step = after;
        }
    }
}
