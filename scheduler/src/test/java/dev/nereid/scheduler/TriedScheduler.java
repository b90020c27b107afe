package dev.nereid.scheduler;

import dev.nereid.scheduler.instance.DirectTrial;
import dev.nereid.scheduler.instance.Instance;
import java.util.List;

/** Starts schedulers that have ended the trial of a backend that declares its executions short. */
public final class TriedScheduler {
    private TriedScheduler() {}

    /** Starts a scheduler, which executes directly from the first request on if its backend declares short executions. */
    public static ModelScheduler start(ModelPlan plan, List<Instance> instances, SchedulerEnvironment environment) {
        ModelScheduler scheduler = ModelScheduler.start(plan, instances, environment);
        DirectTrial.pass(scheduler.directExecutions());
        return scheduler;
    }
}
