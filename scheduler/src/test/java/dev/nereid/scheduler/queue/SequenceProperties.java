package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.RequestOptions;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.instance.DeviceInstances;
import dev.nereid.scheduler.instance.DirectExecutionPolicy;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.InstanceWorker;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.Tuple;

/** Properties of every schedule of sequences with states, null requests, re-execution, streams and abandonment. */
@Tag("slow")
final class SequenceProperties {
    private static final int SEQUENCES = 3;
    private static final Shape ONE = Shape.of(1, 1);

    /** One thing that happens. */
    sealed interface Event {
        record Submit(long sequence, boolean movable) implements Event {}

        record Cancel(int index) implements Event {}

        record Abandon(int index) implements Event {}

        record Step(Backend backend) implements Event {}

        record Finish() implements Event {}

        record Close(int index) implements Event {}
    }

    /** The behavior of a backend with a batch; each adds one to the state of each sequence. */
    enum Backend {
        RESPOND,
        FAIL,
        FAIL_LAST,
        FAIL_BY_SENDER,
        AGAIN,
        DEFER,
        AGAIN_AND_DEFER
    }

    @Provide
    Arbitrary<List<Event>> schedules() {
        Arbitrary<Event> submit = Combinators.combine(
                        Arbitraries.longs().between(1, SEQUENCES), Arbitraries.of(true, true, true, false))
                .as(Event.Submit::new);
        Arbitrary<Integer> index = Arbitraries.integers().between(0, 100);
        return Arbitraries.frequencyOf(
                        Tuple.of(5, submit),
                        Tuple.of(1, index.map(Event.Cancel::new)),
                        Tuple.of(1, index.map(Event.Abandon::new)),
                        Tuple.of(5, Arbitraries.of(Backend.class).map(Event.Step::new)),
                        Tuple.of(2, Arbitraries.just(new Event.Finish())),
                        Tuple.of(2, index.map(Event.Close::new)))
                .list()
                .ofMaxSize(40);
    }

    @Property
    void keepsItsPromises(@ForAll("schedules") List<Event> schedule, @ForAll boolean decoupled) {
        Run run = new Run(decoupled);
        schedule.forEach(run::on);
        run.end();
    }

    /** A schedule on its way. */
    private static final class Run {
        private final LeakCheckingMemory memory = new LeakCheckingMemory();
        private final boolean decoupled;
        private final ModelScope scope;
        private final BoundSource source;
        private final InstanceWorker worker;
        private final FakeInstance instance = new FakeInstance(this::execute);
        private final List<RecordingObserver> observers = new ArrayList<>();
        private final List<ScheduledRequest> requests = new ArrayList<>();
        private final Deque<Runnable> later = new ArrayDeque<>();

        /** The expected state of each sequence. */
        private final Map<Long, Float> sums = new HashMap<>();

        private Backend backend = Backend.RESPOND;

        Run(boolean decoupled) {
            this.decoupled = decoupled;
            ModelSettings model = ModelSettings.builder("m", 1)
                    .maxBatchSize(8)
                    .decoupled(decoupled)
                    .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1)))
                    .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
                    .build();
            scope = Scopes.of(model, memory, () -> 0);
            source = new BoundSource(scope);
            ExecutionScope executions =
                    ExecutionScope.of(scope, AcceptedMemory.HOST, Runnable::run).withIterative(true);
            worker = new InstanceWorker(
                    executions,
                    new DeviceInstances(List.of(SteppedScheduler.slot("i0", instance, RateProfile.NONE))),
                    source,
                    new DirectExecutionPolicy(model, ExecutionTraits.DEFAULT),
                    16,
                    new Warmup(executions, List.of(), 1));
        }

        void on(Event event) {
            switch (event) {
                case Event.Submit(long sequence, boolean movable) -> submit(sequence, movable, false);
                case Event.Cancel(int index) -> {
                    if (!requests.isEmpty()) {
                        requests.get(index % requests.size()).cancel();
                    }
                }
                case Event.Abandon(int index) -> {
                    if (!requests.isEmpty()) {
                        requests.get(index % requests.size()).abandon();
                    }
                }
                case Event.Step(Backend what) -> {
                    backend = what;
                    worker.step();
                }
                case Event.Finish() -> finish();
                case Event.Close(int index) -> {
                    if (!observers.isEmpty()) {
                        observers.get(index % observers.size()).responses().forEach(response -> response.close());
                    }
                }
            }
        }

        private void finish() {
            Runnable next = later.poll();
            if (next != null) {
                next.run();
            }
        }

        private void submit(long sequence, boolean movable, boolean end) {
            Requests request = Requests.to(scope.settings(), memory)
                    .options(new RequestOptions(
                            0,
                            0,
                            OptionalLong.empty(),
                            Optional.of(new Sequence(new Sequence.Id.Numeric(sequence), false, end))));
            if (movable) {
                request.floats("IN", ONE, (float) sequence);
            } else {
                MemoryPlace nowhere = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
                request.input("IN", Tensor.of(DataType.FP32, ONE, Arena.global().allocate(Float.BYTES), nowhere));
            }
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            ScheduledRequest scheduled = new ScheduledRequest(scope, null, request.of(1), observer, 0);
            requests.add(scheduled);
            assertThat(source.offer(scheduled)).isTrue();
        }

        private void execute(Batch batch) {
            List<Long> stored = new ArrayList<>();
            InferenceRequest last = batch.requests().getLast();
            for (InferenceRequest request : batch.requests()) {
                float sum = value(request.requireInput("SUM"));
                request.state("NEXT_SUM")
                        .allocate(DataType.FP32, ONE)
                        .data()
                        .set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, sum + 1);
                if (!request.isNullRequest()) {
                    long sequence = ((Sequence.Id.Numeric)
                                    request.sequence().orElseThrow().id())
                            .value();
                    assertThat(value(request.requireInput("IN"))).isEqualTo((float) sequence);
                    assertThat(sum).as("state").isEqualTo(sums.getOrDefault(sequence, 0f));
                    stored.add(sequence);
                    last = request; // of a client
                }
                respond(request);
            }
            boolean again = backend == Backend.AGAIN || backend == Backend.AGAIN_AND_DEFER;
            if (again) {
                batch.requests().forEach(Run::again);
            }
            switch (backend) {
                case FAIL -> throw new BackendException(ErrorCode.INTERNAL, "failed");
                case FAIL_LAST -> {
                    last.fail(new BackendException(ErrorCode.INTERNAL, "failed"));
                    stored.removeLast();
                }
                case FAIL_BY_SENDER -> {
                    if (decoupled && !isEnded(last)) {
                        last.sender().fail(new BackendException(ErrorCode.INTERNAL, "by the sender"));
                        stored.removeLast();
                    }
                }
                case DEFER, AGAIN_AND_DEFER -> {
                    DeferredExecution handle = batch.defer();
                    later.add(() -> {
                        stored.forEach(this::add);
                        handle.complete();
                    });
                    return;
                }
                case RESPOND, AGAIN -> {}
            }
            stored.forEach(this::add);
        }

        private void add(long sequence) {
            sums.merge(sequence, 1f, Float::sum);
        }

        private void respond(InferenceRequest request) {
            Tensor state = request.requireInput("SUM");
            if (!decoupled) {
                request.response().put("OUT", state);
                return;
            }
            ResponseSender sender = request.sender();
            InferenceResponse response = sender.newResponse();
            response.put("OUT", state);
            sender.send(response);
            later.add(sender::complete);
        }

        /** The sender may be ended by now. */
        private static void again(InferenceRequest request) {
            try {
                request.reschedule();
            } catch (IllegalStateException e) {
                assertThat(e).hasMessageContaining("the sender is ended");
            }
        }

        /** A sender that an earlier execution opened may be ended by now; it fails nothing then. */
        private static boolean isEnded(InferenceRequest request) {
            try {
                request.reschedule(); // has no effect on a failed request
                return false;
            } catch (IllegalStateException e) {
                return true;
            }
        }

        private static float value(Tensor tensor) {
            return tensor.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
        }

        void end() {
            backend = Backend.RESPOND;
            for (long sequence = 1; sequence <= SEQUENCES; sequence++) {
                submit(sequence, true, true);
            }
            boolean more = true;
            while (more) {
                more = worker.step() || !later.isEmpty();
                finish();
            }
            for (RecordingObserver observer : observers) {
                observer.check();
                assertThat(observer.hasEnded()).as("completed").isTrue();
                observer.close();
            }
            assertThat(instance.violations()).isEmpty();
            assertThat(source.sequences()).isZero();
            assertThat(scope.drain().count()).as("in flight").isZero();
            memory.close();
        }
    }
}
