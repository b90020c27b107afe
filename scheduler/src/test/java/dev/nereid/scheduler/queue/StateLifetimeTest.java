package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferResponse;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.TensorLease;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.Threads;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.instance.DeviceInstances;
import dev.nereid.scheduler.instance.DirectExecutionPolicy;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.InstanceWorker;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * How long the memory of states lives: until the next value replaces it, and as long as outputs lie in it. Memory that
 * is freed too early throws when it is read; memory that is freed too late counts as a leak.
 */
final class StateLifetimeTest {
    private static final Shape ONE = Shape.of(1, 1);

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final List<String> released = new ArrayList<>();
    private FakeInstance.Execution execution = StateLifetimeTest::add;
    private final FakeInstance instance = new FakeInstance(batch -> execution.execute(batch));
    private ModelScope scope = scope(false);
    private BoundSource source = new BoundSource(scope);
    private InstanceWorker worker = worker();

    /** {@code true} if the test closed the instance. */
    private boolean closed;

    private ModelScope scope(boolean decoupled) {
        ModelSettings model = ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .decoupled(decoupled)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
                .output(TensorSpec.of("ALL", DataType.FP32, Shape.of(1)).with(TensorSpec.Trait.SHAPE_TENSOR))
                .build();
        return Scopes.of(model, memory, () -> 0);
    }

    private InstanceWorker worker() {
        Instance managed = SteppedScheduler.slot("i0", instance, RateProfile.NONE);
        ExecutionScope executions = ExecutionScope.of(scope, AcceptedMemory.HOST, Thread::startVirtualThread)
                .withIterative(true);
        return new InstanceWorker(
                executions,
                new DeviceInstances(List.of(managed)),
                source,
                new DirectExecutionPolicy(scope.settings(), ExecutionTraits.DEFAULT),
                16,
                new Warmup(executions, List.of(), 1));
    }

    /** Replaces the model, which has no requests yet, by one that is decoupled. */
    private void decouple() {
        scope = scope(true);
        source = new BoundSource(scope);
        worker = worker();
    }

    private RecordingObserver submit(long sequence, float value, boolean end) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        Sequence position = new Sequence(new Sequence.Id.Numeric(sequence), false, end);
        ScheduledRequest request = new ScheduledRequest(
                scope,
                null,
                Requests.to(scope.settings(), memory)
                        .options(new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(position)))
                        .floats("IN", ONE, value)
                        .of(1),
                observer,
                0);
        assertThat(source.offer(request)).isTrue();
        return observer;
    }

    /** Executes the next request of some sequences, each with its number as input, as one batch. */
    private List<RecordingObserver> execute(FakeInstance.Execution backend, long... sequences) {
        execution = backend;
        List<RecordingObserver> submitted = new ArrayList<>();
        for (long sequence : sequences) {
            submitted.add(submit(sequence, (float) sequence, false));
        }
        assertThat(worker.step()).isTrue();
        return submitted;
    }

    @AfterEach
    void allIsReleased() {
        execution = StateLifetimeTest::add;
        boolean more = !closed;
        if (more) {
            List.of(1L, 2L, 3L).forEach(id -> submit(id, 0, true));
        }
        while (more) {
            more = worker.step();
        }
        for (RecordingObserver observer : observers) {
            observer.check();
            assertThat(observer.hasEnded()).isTrue();
            observer.close();
        }
        assertThat(instance.violations()).isEmpty();
        assertThat(scope.drain().count()).isZero();
        memory.close();
    }

    private static float value(Tensor tensor) {
        return tensor.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
    }

    private static Tensor state(Batch batch, int index) {
        return batch.requests().get(index).requireInput("SUM");
    }

    /** Adds each input to the state of its sequence; returns no output. */
    private static void add(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            float sum = value(request.requireInput("SUM")) + value(request.requireInput("IN"));
            MemorySegment next =
                    request.state("NEXT_SUM").allocate(DataType.FP32, ONE).data();
            next.set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, sum);
        }
    }

    private void assertBuffers(String which, int expected) {
        assertThat(memory.buffersInUse()).as(which).isEqualTo(expected);
    }

    @Test
    void endsWithTheNextValue() {
        execute(StateLifetimeTest::add, 1);
        assertBuffers("the state", 1);

        execute(StateLifetimeTest::add, 1);

        assertBuffers("the next state", 1);
    }

    @Test
    void lastsAsLongAsAnOutputThatLiesInIt() {
        execute(StateLifetimeTest::add, 1);
        RecordingObserver observer = execute(
                        batch -> {
                            add(batch);
                            batch.requests().getFirst().response().put("OUT", state(batch, 0), this::release);
                        },
                        1)
                .getFirst();
        execute(StateLifetimeTest::add, 1);
        execute(StateLifetimeTest::add, 1);

        assertThat(observer.floats("OUT")).containsExactly(1);
        assertThat(released).isEmpty();
        observer.close();
        assertThat(released).hasSize(1);
        assertBuffers("the last state", 1);
    }

    @Test
    void lastsAsLongAsAnOutputPutForABatchOfOne() {
        execute(StateLifetimeTest::add, 1);
        RecordingObserver observer = execute(
                        batch -> {
                            add(batch);
                            batch.put("OUT", state(batch, 0), this::release);
                        },
                        1)
                .getFirst();
        execute(StateLifetimeTest::add, 1);

        assertThat(observer.floats("OUT")).containsExactly(1);
        observer.close();
        assertBuffers("the last state", 1);
    }

    @Test
    void lastsAsLongAsOutputsOfABatchThatLieInIt() {
        execute(StateLifetimeTest::add, 1, 2, 3);
        List<RecordingObserver> of = execute(
                batch -> {
                    add(batch);
                    for (int i = 0; i < 3; i++) { // also in the state of another sequence
                        batch.requests().get(i).response().put("OUT", state(batch, i == 2 ? 0 : i), this::release);
                    }
                },
                1,
                2,
                3);
        execute(StateLifetimeTest::add, 1, 2, 3);

        assertThat(of.get(1).floats("OUT")).containsExactly(2);
        of.get(1).close();
        assertThat(of.get(0).floats("OUT")).containsExactly(1);
        of.get(0).close();
        assertThat(of.get(2).floats("OUT")).containsExactly(1);
        of.get(2).close();
        assertThat(released).hasSize(3);
        assertBuffers("the last states", 3);
    }

    @Test
    void lastsAsLongAsAnyPartOfAnOutputPutForTheBatch() {
        execute(StateLifetimeTest::add, 1, 2);
        List<RecordingObserver> of = execute(
                batch -> {
                    add(batch);
                    batch.put("ALL", state(batch, 1).withShape(Shape.of(1)), this::release);
                },
                1,
                2);
        execute(StateLifetimeTest::add, 1, 2);

        of.get(1).close();
        assertThat(of.get(0).floats("ALL")).containsExactly(2);
        assertThat(released).isEmpty();
        of.get(0).close();
        assertThat(released).hasSize(1);
        assertBuffers("the last states", 2);
    }

    @Test
    void endsWithTheNextValueIfAnOutputLiesInAGatheredCopy() {
        execute(StateLifetimeTest::add, 1, 2);
        List<RecordingObserver> of = execute(
                batch -> {
                    add(batch);
                    batch.put("OUT", batch.gather("SUM"), this::release);
                },
                1,
                2);
        execute(StateLifetimeTest::add, 1, 2);

        assertBuffers("the last states and the copy", 3);
        assertThat(of.get(0).floats("OUT")).containsExactly(1);
        assertThat(of.get(1).floats("OUT")).containsExactly(2);
    }

    @Test
    void lastsAsLongAsALeaseOfTheOutput() {
        execute(StateLifetimeTest::add, 1);
        RecordingObserver observer = execute(
                        batch -> {
                            add(batch);
                            batch.requests().getFirst().response().put("OUT", state(batch, 0), this::release);
                        },
                        1)
                .getFirst();
        try (TensorLease lease = observer.response().lease(0)) {
            observer.close();
            execute(StateLifetimeTest::add, 1);

            assertThat(value(lease.tensor())).isEqualTo(1);
            assertThat(released).isEmpty();
        }
        assertThat(released).hasSize(1);
        assertBuffers("the last state", 1);
    }

    @Test
    void isReleasedIfTheOutputIsRefused() {
        execute(StateLifetimeTest::add, 1, 2);
        execute(
                batch -> {
                    add(batch);
                    Tensor state = state(batch, 0);
                    InferenceResponse response = batch.requests().getFirst().response();
                    response.put("OUT", state, this::release);
                    assertThatThrownBy(() -> response.put("OUT", state, this::release))
                            .isInstanceOf(BackendException.class);
                    assertThatThrownBy(() -> batch.put("OUT", state, this::release))
                            .isInstanceOf(BackendException.class);
                },
                1,
                2);
        observers.forEach(RecordingObserver::close);
        execute(StateLifetimeTest::add, 1, 2);

        assertThat(released).hasSize(3);
        assertBuffers("the last states", 2);
    }

    @Test
    void staysIfTheExecutionFails() {
        execute(StateLifetimeTest::add, 1);
        RecordingObserver failed = execute(
                        batch -> {
                            add(batch);
                            batch.requests().getFirst().response().put("OUT", state(batch, 0), this::release);
                            throw new BackendException(ErrorCode.INTERNAL, "failed");
                        },
                        1)
                .getFirst();

        failed.assertError(ErrorCode.INTERNAL, "failed");
        assertThat(released).hasSize(1);
        assertBuffers("the state", 1);
        RecordingObserver next = execute(
                        batch -> {
                            add(batch);
                            batch.requests().getFirst().response().put("OUT", state(batch, 0));
                        },
                        1)
                .getFirst();
        assertThat(next.floats("OUT")).containsExactly(1);
    }

    @Test
    void lastsUntilTheSenderEnds() {
        decouple();
        execute(StateLifetimeTest::add, 1);
        List<ResponseSender> senders = new ArrayList<>();
        List<Tensor> states = new ArrayList<>();
        RecordingObserver observer = execute(
                        batch -> {
                            add(batch);
                            states.add(state(batch, 0));
                            senders.add(batch.requests().getFirst().sender());
                        },
                        1)
                .getFirst();
        execute(StateLifetimeTest::add, 1);

        assertThat(value(states.getFirst())).as("used by the sender").isEqualTo(1);
        send(senders.getFirst(), states.getFirst());
        senders.getFirst().complete();
        execute(StateLifetimeTest::add, 1);

        assertThat(floats(observer.responses().getFirst())).containsExactly(1);
        observer.close();
        assertBuffers("the last state", 1);
    }

    @Test
    void staysIfTheBackendFailsTheRequestByItsSender() {
        decouple();
        execute(StateLifetimeTest::add, 1);
        RecordingObserver failed = execute(
                        batch -> {
                            add(batch);
                            batch.requests()
                                    .getFirst()
                                    .sender()
                                    .fail(new BackendException(ErrorCode.INTERNAL, "by the sender"));
                        },
                        1)
                .getFirst();

        failed.assertError(ErrorCode.INTERNAL, "by the sender");
        List<Float> seen = new ArrayList<>();
        execute(batch -> seen.add(value(state(batch, 0))), 1);
        assertThat(seen).containsExactly(1f);
    }

    /** The zeros of a null request last as long as its sender, which keeps the instance as any other does. */
    @Test
    void ofZerosLastsAsLongAsTheSenderOfANullRequest() {
        decouple();
        execute(StateLifetimeTest::add, 1, 2);
        List<InferenceRequest> requests = new ArrayList<>();
        List<ResponseSender> senders = new ArrayList<>();
        execute(
                batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        requests.add(request);
                        senders.add(request.sender());
                    }
                },
                1);
        assertThat(requests).extracting(InferenceRequest::isNullRequest).containsExactly(true, false);
        senders.get(1).complete();
        execution = StateLifetimeTest::add;
        submit(1, 0, true);
        submit(2, 0, true);
        assertThat(worker.step()).isTrue();

        worker.retire();
        Thread own = Thread.ofPlatform().daemon(true).start(worker);
        Threads.awaitAsleep(own);
        assertThat(instance.isClosed()).isFalse();
        assertThat(value(requests.getFirst().input("IN").orElseThrow())).isZero();
        senders.getFirst().complete();
        Threads.await("closed", instance::isClosed);

        assertThat(memory.buffersInUse()).isZero();
        closed = true;
    }

    /** Otherwise the memory of a request that is executed often would grow with the number of its executions. */
    @Test
    void ofEachExecutionLastsAsLongAsItsResponse() {
        decouple();
        RecordingObserver observer = execute(this::sendTheStateAndReschedule, 1).getFirst();
        int executions = 20;
        for (int i = 1; i < executions; i++) {
            assertThat(worker.step()).isTrue();
            if (i > 2) { // the client closes each response after the next two
                InferResponse response = observer.responses().get(i - 2);
                assertThat(floats(response)).containsExactly(i - 2);
                response.close();
                assertBuffers("the input, two states in responses, the next state", 4);
            }
        }
        execution = batch -> {
            add(batch);
            batch.requests().getFirst().sender().complete();
        };
        assertThat(worker.step()).isTrue();
        assertThat(observer.hasEnded()).isTrue();
        assertThat(observer.responses()).hasSize(executions);
    }

    private void sendTheStateAndReschedule(Batch batch) {
        add(batch);
        InferenceRequest request = batch.requests().getFirst();
        send(request.sender(), state(batch, 0));
        request.reschedule();
    }

    private void send(ResponseSender sender, Tensor output) {
        InferenceResponse response = sender.newResponse();
        try {
            response.put("OUT", output, this::release);
        } catch (BackendException e) {
            throw new AssertionError(e);
        }
        sender.send(response);
    }

    private static float[] floats(InferResponse response) {
        return response.outputs().getFirst().tensor().data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }

    private void release() {
        released.add("output");
    }
}
