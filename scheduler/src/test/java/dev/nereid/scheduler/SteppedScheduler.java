package dev.nereid.scheduler;

import dev.nereid.api.Cancellation;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.batch.StrategyBatcher;
import dev.nereid.scheduler.instance.DeviceInstances;
import dev.nereid.scheduler.instance.DirectExecutionPolicy;
import dev.nereid.scheduler.instance.DirectTrial;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.InstanceWorker;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.queue.OfferResult;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.RequestQueue;
import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ResponseOrder;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeClock;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The parts of a {@link ModelScheduler} without its threads: the test steps instances and time. Confined. */
public final class SteppedScheduler {
    public final FakeClock clock = new FakeClock();
    final TimeoutQueue timeouts = new TimeoutQueue(() -> {});
    public final ModelScope model;
    public final ExecutionScope scope;
    public final RequestQueue queue;
    public final @Nullable ResponseOrder order;
    public final List<InstanceWorker> workers = new ArrayList<>();
    private final DirectExecutionPolicy executions;
    private final int maxDeferred;

    public SteppedScheduler(
            ModelSettings settings, BatchPlanner planner, TensorMemory memory, FakeInstance... instances) {
        this(settings, planner, BatchingPolicy.NONE, memory, ExecutionTraits.DEFAULT, instances);
    }

    /** Creates a scheduler with the levels, timeouts, queue sizes and order of a policy. */
    public SteppedScheduler(
            ModelSettings settings,
            BatchPlanner planner,
            BatchingPolicy policy,
            TensorMemory memory,
            ExecutionTraits traits,
            FakeInstance... instances) {
        this(settings, planner, policy, memory, traits, null, ExecutionLimiter.OFF, RateProfile.NONE, false, instances);
    }

    /** Creates a scheduler for a backend that may have requests executed again. */
    public static SteppedScheduler iterative(
            ModelSettings settings,
            BatchPlanner planner,
            PriorityPolicy priorities,
            TensorMemory memory,
            ExecutionTraits traits,
            FakeInstance... instances) {
        return new SteppedScheduler(
                settings,
                planner,
                new BatchingPolicy(true, List.of(), 0, false, priorities),
                memory,
                traits,
                null,
                ExecutionLimiter.OFF,
                RateProfile.NONE,
                true,
                instances);
    }

    /** Creates a scheduler for a model that may have a batching strategy. */
    public SteppedScheduler(
            ModelSettings settings,
            BatchPlanner planner,
            BatchingPolicy policy,
            TensorMemory memory,
            ExecutionTraits traits,
            @Nullable BatchingStrategy strategy,
            FakeInstance... instances) {
        this(
                settings,
                planner,
                policy,
                memory,
                traits,
                strategy,
                ExecutionLimiter.OFF,
                RateProfile.NONE,
                false,
                instances);
    }

    /** Creates a scheduler whose instances request permits from a limiter. */
    public SteppedScheduler(
            ModelSettings settings,
            BatchPlanner planner,
            BatchingPolicy policy,
            TensorMemory memory,
            ExecutionTraits traits,
            ExecutionLimiter limiter,
            RateProfile rate,
            FakeInstance... instances) {
        this(settings, planner, policy, memory, traits, null, limiter, rate, false, instances);
    }

    private SteppedScheduler(
            ModelSettings settings,
            BatchPlanner planner,
            BatchingPolicy policy,
            TensorMemory memory,
            ExecutionTraits traits,
            @Nullable BatchingStrategy strategy,
            ExecutionLimiter limiter,
            RateProfile rate,
            boolean iterative,
            FakeInstance... instances) {
        model = Scopes.of(settings, memory, clock);
        scope = ExecutionScope.of(model, traits.accepted(), traits.callbacks())
                .with(traits.forgotten())
                .withIterative(iterative);
        executions = new DirectExecutionPolicy(settings, traits);
        DirectTrial.pass(executions);
        maxDeferred = traits.maxDeferred();
        order = policy.preserveOrdering() ? new ResponseOrder() : null;
        StrategyBatcher batcher = strategy == null ? null : new StrategyBatcher(model, strategy, planner);
        queue = new RequestQueue(
                planner, policy.priorities(), new EqualInputs(model.settings()), clock, timeouts, batcher);
        if (iterative) {
            queue.setRescheduledRequests();
        }
        for (FakeInstance instance : instances) {
            add(limiter, List.of(slot("i" + workers.size(), instance, rate)));
        }
    }

    /** Creates an instance that runs anywhere. */
    public static Instance slot(String name, FakeInstance instance, RateProfile rate) {
        return instance.as(name, Device.CPU, rate);
    }

    /** Adds a worker for an instance on a device. */
    public void add(Device device, FakeInstance instance) {
        add(
                ExecutionLimiter.OFF,
                List.of(new Instance(
                        "i" + workers.size(), device, instance, RateProfile.NONE, Instance.ThreadPlacement.ANYWHERE)));
    }

    /** Adds a worker for some instances that share a thread. */
    public InstanceWorker add(ExecutionLimiter limiter, List<Instance> slots) {
        List<Instance> instances = slots.stream().toList();
        instances.forEach(instance -> instance.register(limiter));
        Warmup none = new Warmup(scope, List.of(), 1);
        InstanceWorker worker = new InstanceWorker(
                scope, new DeviceInstances(instances), queue.source(), executions, maxDeferred, none);
        workers.add(worker);
        return worker;
    }

    /** Creates an empty queue without instances, for requests that never reach it. */
    public static RequestQueue queue(ModelScope model) {
        return new RequestQueue(
                BatchPlanner.oneByOne(),
                PriorityPolicy.NONE,
                new EqualInputs(model.settings()),
                () -> 0,
                new TimeoutQueue(() -> {}),
                null);
    }

    public Cancellation submit(CheckedRequest checked, RecordingObserver observer) {
        long now = clock.getAsLong();
        ScheduledRequest request = new ScheduledRequest(model, order, checked.arrivedAt(now), observer, now);
        enqueue(request);
        return request;
    }

    /** Queues a request, or completes it. */
    void enqueue(ScheduledRequest request) {
        OfferResult admission = queue.offer(request, false);
        if (admission == OfferResult.Outcome.FULL) {
            request.refuse(SchedulerErrors.full(request.checked()));
        } else if (admission != OfferResult.Outcome.ACCEPTED) {
            request.refuse(SchedulerErrors.stopped(request.checked()));
        }
    }

    /** Advances the clock, and fires all expired timeouts. */
    public void advance(long nanos) {
        clock.advanceNanos(nanos);
        timeouts.runExpired(clock.getAsLong());
    }

    /** Executes one batch on the first instance, if there is one for it. */
    public boolean step() {
        return workers.getFirst().step();
    }

    /** Executes batches on the first instance until there is none at this time. */
    public void drain() {
        boolean found = true;
        while (found) {
            found = step();
        }
    }

    public int inFlight() {
        return model.drain().count();
    }
}
