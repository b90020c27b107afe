package dev.nereid.scheduler.ensemble;

import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.time.Timer;
import java.util.ArrayList;
import java.util.List;

/**
 * Holds the data that all requests to one loaded ensemble share. Immutable except for its limits; safe for use by any
 * thread.
 */
public final class EnsembleScope {
    private final EnsemblePlan plan;
    private final StepModels models;
    private final ExecutionScope scope;
    private final Timer timer;

    /** The limit of each step; empty without limits. */
    private final List<InflightLimit> limits = new ArrayList<>();

    /** Creates the scope of a loaded ensemble. The timer ends the waits of requests with deadlines. */
    public EnsembleScope(EnsemblePlan plan, StepModels models, ExecutionScope scope, Timer timer) {
        this.plan = plan;
        this.models = models;
        this.scope = scope;
        this.timer = timer;
        int max = plan.limits().maxInflightRequests();
        for (int i = 0; max > 0 && i < plan.stepCount(); i++) {
            limits.add(new InflightLimit(max));
        }
    }

    EnsemblePlan plan() {
        return plan;
    }

    StepModels models() {
        return models;
    }

    ExecutionScope execution() {
        return scope;
    }

    Timer timer() {
        return timer;
    }

    /** Counts a step as in flight if its limit allows that; otherwise it waits until it is granted. */
    boolean acquire(StepExecution step) {
        return limits.isEmpty() || limits.get(step.step().index()).acquire(step);
    }

    /** Ends the count of a step as in flight. */
    void release(StepExecution step) {
        if (!limits.isEmpty()) {
            limits.get(step.step().index()).release();
        }
    }

    /** Ends the wait of a step; returns {@code false} if it is granted by now. */
    boolean leave(StepExecution step) {
        return limits.isEmpty() || limits.get(step.step().index()).leave(step);
    }

    /** Returns the time on the scale of {@link System#nanoTime()}. */
    long now() {
        return scope.model().nanoTime().getAsLong();
    }
}
