package dev.nereid.scheduler;

import dev.nereid.api.Cancellation;
import dev.nereid.api.TensorMemory;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeClock;
import java.util.ArrayList;
import java.util.List;

/** The parts of a {@link ModelScheduler} without its threads: each instance goes when the test says so. Confined. */
final class SteppedScheduler {
    final FakeClock clock = new FakeClock();
    final ModelScope model;
    final RequestQueue queue;
    final List<InstanceWorker> workers = new ArrayList<>();

    SteppedScheduler(ModelSettings settings, BatchPlanner planner, TensorMemory memory, FakeInstance... instances) {
        this(settings, planner, new SchedulerEnvironment(memory, () -> 0), instances);
    }

    /** Makes a scheduler for an environment of which everything but the clock is taken. */
    SteppedScheduler(
            ModelSettings settings, BatchPlanner planner, SchedulerEnvironment environment, FakeInstance... instances) {
        model = ModelScope.of(
                settings,
                new SchedulerEnvironment(environment.memory(), clock, environment.wallClock(), environment.backend()));
        ShortExecutions executions = new ShortExecutions(settings, environment.backend());
        queue = new RequestQueue(planner, model.equalInputs(), clock);
        for (FakeInstance instance : instances) {
            InstanceSlot slot = new InstanceSlot("i" + workers.size(), Device.CPU, instance);
            workers.add(new InstanceWorker(model, new PluginInstance(slot), queue, executions, clock));
        }
    }

    Cancellation submit(CheckedCall call, RecordingObserver observer) {
        long now = clock.getAsLong();
        ScheduledRequest request = new ScheduledRequest(model, call, observer, now, now);
        if (queue.offer(request, false) != Admission.Outcome.ACCEPTED) {
            request.refuse(SchedulerErrors.stopped(call));
        }
        return request;
    }

    /** Lets the first instance take a batch, if there is one for it. */
    boolean step() {
        return workers.getFirst().step();
    }

    /** Lets the first instance go on until there is nothing to do at this time. */
    void drain() {
        boolean found = true;
        while (found) {
            found = step();
        }
    }

    int inFlight() {
        return model.inFlight().count();
    }
}
