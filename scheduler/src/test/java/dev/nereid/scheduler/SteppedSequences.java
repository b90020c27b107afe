package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.Refusals;
import dev.nereid.api.RequestOptions;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.instance.DeviceInstances;
import dev.nereid.scheduler.instance.DirectExecutionPolicy;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.InstanceWorker;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.ModelQueue;
import dev.nereid.scheduler.queue.OfferResult;
import dev.nereid.scheduler.queue.SequenceUse;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.sequence.SequencePlan;
import dev.nereid.scheduler.sequence.SequenceQueue;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.scheduler.time.Timer;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.FakeDeviceMemory;
import dev.nereid.testkit.FakeFlow;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * The sequences of a model without threads: the test steps instances and time. Confined. Its close ends what is left,
 * and checks that all memory is returned.
 */
public final class SteppedSequences implements AutoCloseable {
    public final FakeClock clock = new FakeClock();

    /** Called with each look at the clock. */
    public Runnable onClock = () -> {};

    /** Memory of a GPU, closed with that of the host. */
    public final FakeDeviceMemory device = new FakeDeviceMemory(new MemoryPlace(MemoryPlace.Kind.GPU, 0));

    public final LeakCheckingMemory memory = new LeakCheckingMemory(device);
    public final Refusals refusals = Refusals.counting(false);
    public final ModelScope model;
    public final ModelQueue intake;
    public final List<InstanceWorker> workers = new ArrayList<>();
    public final List<FakeInstance> instances = new ArrayList<>();
    private final TimeoutQueue timeouts = new TimeoutQueue(() -> {});
    private final ExecutionScope scope;
    private final List<RecordingObserver> observers = new ArrayList<>();

    /** The options of a request, with its place in the sequence. */
    public static final class Position {
        private final Sequence.Id id;
        private boolean start;
        private boolean end;
        private long timeoutMicros;
        private OptionalLong deadline = OptionalLong.empty();

        private Position(Sequence.Id id) {
            this.id = id;
        }

        public Position start() {
            start = true;
            return this;
        }

        public Position end() {
            end = true;
            return this;
        }

        public Position timeoutMicros(long micros) {
            timeoutMicros = micros;
            return this;
        }

        public Position deadline(long nanos) {
            deadline = OptionalLong.of(nanos);
            return this;
        }

        public RequestOptions options() {
            return new RequestOptions(0, timeoutMicros, deadline, Optional.of(new Sequence(id, start, end)));
        }
    }

    public static Position sequence(long id) {
        return new Position(new Sequence.Id.Numeric(id));
    }

    public static Position sequence(String id) {
        return new Position(new Sequence.Id.Text(id));
    }

    /** A request that was submitted. */
    public record Sent(RecordingObserver observer, Cancellation cancellation) {
        /** Returns the number that was the response. */
        public float sum() {
            return observer.floats("OUT")[0];
        }
    }

    /** Creates a queue of sequences. */
    @FunctionalInterface
    public interface Intake {
        ModelQueue of(ModelScope model, SequencePlan plan, Timer timer);
    }

    /** Returns the queue, unless it is another one. */
    public SequenceQueue queue() {
        return (SequenceQueue) intake;
    }

    /** Describes a model with an input {@code IN} and an output {@code OUT}. */
    public static ModelSettings settings(int maxBatchSize) {
        return settings(maxBatchSize, false);
    }

    public static ModelSettings settings(int maxBatchSize, boolean decoupled) {
        return ModelSettings.builder("stateful", 1)
                .maxBatchSize(maxBatchSize)
                .decoupled(decoupled)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .build();
    }

    public SteppedSequences(ModelSettings settings, SequencePlan plan, FakeInstance.Execution... backends) {
        this(settings, plan, SequenceQueue::new, backends);
    }

    /** Creates sequences in another queue. */
    public SteppedSequences(
            ModelSettings settings, SequencePlan plan, Intake newIntake, FakeInstance.Execution... backends) {
        model = Scopes.of(
                settings,
                memory,
                () -> {
                    onClock.run();
                    return clock.getAsLong();
                },
                refusals);
        scope = ExecutionScope.of(model, ExecutionTraits.DEFAULT.accepted(), Runnable::run)
                .withIterative(plan.batching().iterative());
        intake = newIntake.of(model, plan, timeouts);
        for (FakeInstance.Execution backend : backends) {
            add(backend);
        }
    }

    /** Adds an instance, which gets sequences from its first step on. */
    public InstanceWorker add(FakeInstance.Execution backend) {
        FakeInstance instance = new FakeInstance(backend);
        InstanceWorker worker = new InstanceWorker(
                scope,
                new DeviceInstances(List.of(SteppedScheduler.slot("i" + instances.size(), instance, RateProfile.NONE))),
                intake.source(),
                new DirectExecutionPolicy(model.settings(), ExecutionTraits.DEFAULT),
                ExecutionTraits.DEFAULT.maxDeferred(),
                new Warmup(scope, List.of(), 1));
        instances.add(instance);
        workers.add(worker);
        worker.step();
        return worker;
    }

    /** Submits a request with one number, whose id is that number. */
    public Sent send(Position position, float value) {
        return send(position, request(value));
    }

    public Requests request(float value) {
        return Requests.to(model.settings(), memory)
                .id(Integer.toString((int) value))
                .floats("IN", model.settings().batches() ? Shape.of(1, 1) : Shape.of(1), value);
    }

    public Sent send(Position position, Requests request) {
        return submit(request.options(position.options()).of(1));
    }

    /** Submits a request that its client cancelled before it is queued. */
    public Sent sendCancelled(Position position, Requests request) {
        return submit(request.options(position.options()).of(1), new RecordingObserver(), true);
    }

    /** Submits a request without a sequence of its client, with one number. */
    public Sent sendAlone(float value, FakeFlow flow) {
        return submit(request(value).of(1), new RecordingObserver(flow), false);
    }

    public Sent submit(CheckedRequest checked) {
        return submit(checked, new RecordingObserver(), false);
    }

    private Sent submit(CheckedRequest checked, RecordingObserver observer, boolean cancelled) {
        long now = clock.getAsLong();
        observers.add(observer);
        ScheduledRequest request = new ScheduledRequest(model, null, checked.arrivedAt(now), observer, now);
        if (cancelled) {
            request.cancel();
        }
        try {
            offer(request);
        } catch (IllegalStateException e) { // for a test
            request.failUnqueued(e);
        }
        return new Sent(observer, request);
    }

    private void offer(ScheduledRequest request) {
        switch (intake.offer(request, false)) {
            case InstanceHandle handle ->
                throw new AssertionError("acquired, with " + handle.taken().size() + " requests");
            case OfferResult.Refused refused -> request.refuse(refused.error());
            case OfferResult.Outcome outcome -> assertThat(outcome).isEqualTo(OfferResult.Outcome.ACCEPTED);
        }
    }

    /** Makes the clock fail once, when a method of that name looks at it. */
    public void failClockIn(String method) {
        onClock = () -> {
            if (StackWalker.getInstance()
                    .walk(frames ->
                            frames.anyMatch(frame -> frame.getMethodName().equals(method)))) {
                onClock = () -> {};
                throw new IllegalStateException("for a test");
            }
        };
    }

    /** Executes one batch of an instance; returns whether there was one. */
    public boolean step(int instance) {
        return workers.get(instance).step();
    }

    /** Executes batches until there is none at this time. */
    public void steps() {
        boolean found = true;
        while (found) {
            found = false;
            for (InstanceWorker worker : workers) {
                found |= !worker.isGone() && worker.step();
            }
        }
    }

    /** Ends an instance whose thread failed. */
    public void lose(int instance) {
        workers.get(instance).lose();
    }

    /** Advances the clock, and fires all expired timeouts. */
    public void advance(long nanos) {
        clock.advanceNanos(nanos);
        timeouts.runExpired(clock.getAsLong());
    }

    @Override
    public void close() {
        intake.stop();
        steps();
        observers.forEach(RecordingObserver::check);
        observers.forEach(
                observer -> assertThat(observer.hasEnded()).as("completed").isTrue());
        observers.forEach(RecordingObserver::close);
        SequenceUse use = intake.sequenceUse().orElseThrow();
        assertThat(intake.hasSequences()).as("sequences").isFalse();
        assertThat(use.backlog()).as("backlog").isZero();
        assertThat(intake.waiting()).as("waiting").isZero();
        assertThat(model.drain().count()).as("in flight").isZero();
        instances.forEach(instance -> assertThat(instance.violations()).isEmpty());
        intake.close();
        memory.close();
    }
}
