package dev.nereid.scheduler;

import dev.nereid.api.Cancellation;
import dev.nereid.api.TensorMemory;
import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.time.Alarms;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeClock;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The parts of a {@link ModelScheduler} without its threads: instances and time go when the test says so. Confined. */
final class SteppedScheduler {
    final FakeClock clock = new FakeClock();
    final Alarms alarms = new Alarms(() -> {});
    final ModelScope model;
    final ExecutionScope scope;
    final RequestQueue queue;
    final @Nullable ResponseOrder order;
    final List<InstanceWorker> workers = new ArrayList<>();
    private final ShortExecutions executions;

    SteppedScheduler(ModelSettings settings, BatchPlanner planner, TensorMemory memory, FakeInstance... instances) {
        this(settings, planner, BatchingPolicy.NONE, memory, BackendTerms.DEFAULT, instances);
    }

    /** Makes a scheduler under a policy, of which levels, time-outs, bounds and order are taken. */
    SteppedScheduler(
            ModelSettings settings,
            BatchPlanner planner,
            BatchingPolicy policy,
            TensorMemory memory,
            BackendTerms terms,
            FakeInstance... instances) {
        this(settings, planner, policy, memory, terms, null, RateLimiter.OFF, RateProfile.NONE, instances);
    }

    /** Makes a scheduler for a model that may have a rule of its own. */
    SteppedScheduler(
            ModelSettings settings,
            BatchPlanner planner,
            BatchingPolicy policy,
            TensorMemory memory,
            BackendTerms terms,
            @Nullable BatchingStrategy strategy,
            FakeInstance... instances) {
        this(settings, planner, policy, memory, terms, strategy, RateLimiter.OFF, RateProfile.NONE, instances);
    }

    /** Makes a scheduler whose instances ask a limiter for their turns. */
    SteppedScheduler(
            ModelSettings settings,
            BatchPlanner planner,
            BatchingPolicy policy,
            TensorMemory memory,
            BackendTerms terms,
            RateLimiter limiter,
            RateProfile rate,
            FakeInstance... instances) {
        this(settings, planner, policy, memory, terms, null, limiter, rate, instances);
    }

    private SteppedScheduler(
            ModelSettings settings,
            BatchPlanner planner,
            BatchingPolicy policy,
            TensorMemory memory,
            BackendTerms terms,
            @Nullable BatchingStrategy strategy,
            RateLimiter limiter,
            RateProfile rate,
            FakeInstance... instances) {
        model = Scopes.of(settings, memory, clock);
        scope = ExecutionScope.of(model, terms.clientMemory());
        executions = new ShortExecutions(settings, terms);
        order = policy.preserveOrdering() ? new ResponseOrder() : null;
        StrategyBatcher batcher = strategy == null ? null : new StrategyBatcher(model, strategy, planner);
        queue = new RequestQueue(
                planner, policy.priorities(), new EqualInputs(model.settings()), clock, alarms, batcher);
        for (FakeInstance instance : instances) {
            add(limiter, List.of(slot("i" + workers.size(), instance, rate)));
        }
    }

    /** Makes a slot for an instance that runs anywhere. */
    static InstanceSlot slot(String name, FakeInstance instance, RateProfile rate) {
        return new InstanceSlot(name, Device.CPU, instance, rate, ThreadPlacement.ANYWHERE);
    }

    /** Adds a worker for some instances that share a thread. */
    InstanceWorker add(RateLimiter limiter, List<InstanceSlot> slots) {
        List<PluginInstance> instances = slots.stream().map(PluginInstance::new).toList();
        instances.forEach(instance -> instance.register(limiter));
        Warmup none = new Warmup(scope, List.of(), 1);
        InstanceWorker worker =
                new InstanceWorker(scope, new DeviceSeats(instances), queue.batches(), executions, none);
        workers.add(worker);
        return worker;
    }

    /** Makes an empty queue without instances, for requests that never come to it. */
    static RequestQueue queue(ModelScope model) {
        return new RequestQueue(
                BatchPlanner.oneByOne(),
                PriorityPolicy.NONE,
                new EqualInputs(model.settings()),
                () -> 0,
                new Alarms(() -> {}),
                null);
    }

    Cancellation submit(CheckedCall call, RecordingObserver observer) {
        long now = clock.getAsLong();
        ScheduledRequest request = new ScheduledRequest(model, order, call, observer, now, now);
        enqueue(request);
        return request;
    }

    /** Queues a request, or answers it. */
    void enqueue(ScheduledRequest request) {
        Admission admission = queue.offer(request, false);
        if (admission == Admission.Outcome.FULL) {
            request.refuse(SchedulerErrors.full(request.call()));
        } else if (admission != Admission.Outcome.ACCEPTED) {
            request.refuse(SchedulerErrors.stopped(request.call()));
        }
    }

    /** Lets time pass, and all alarms ring that are due then. */
    void advance(long nanos) {
        clock.advanceNanos(nanos);
        alarms.ring(clock.getAsLong());
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
