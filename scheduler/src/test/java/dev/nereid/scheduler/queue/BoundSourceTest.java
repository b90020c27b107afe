package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.RequestOptions;
import dev.nereid.api.statistics.BatchStatistics;
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
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** An instance with a source of its own: sequences with control inputs, states and null requests. */
@Timeout(60)
final class BoundSourceTest {
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
            .build();
    private final ModelScope scope = Scopes.of(model, memory, System::nanoTime);
    private final BoundSource source = new BoundSource(scope);
    private FakeInstance.Execution execution = BoundSourceTest::sum;
    private final List<List<Float>> ready = new ArrayList<>();
    private final FakeInstance instance = new FakeInstance(batch -> {
        List<Float> flags = new ArrayList<>();
        for (InferenceRequest request : batch.requests()) {
            assertThat(request.inputs()).containsExactly("IN", "READY", "SUM");
            assertThat(request.isNullRequest()).isEqualTo(value(request, "READY") == 0);
            flags.add(value(request, "READY"));
        }
        assertThat(batch.inputs()).containsExactly("IN", "READY", "SUM");
        ready.add(flags);
        execution.execute(batch);
    });
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final InstanceWorker worker;

    BoundSourceTest() {
        Instance managed = SteppedScheduler.slot("i0", instance, RateProfile.NONE);
        ExecutionScope executions = ExecutionScope.of(scope, AcceptedMemory.HOST, Thread::startVirtualThread)
                .withIterative(true);
        worker = new InstanceWorker(
                executions,
                new DeviceInstances(List.of(managed)),
                source,
                new DirectExecutionPolicy(model, ExecutionTraits.DEFAULT),
                16,
                new Warmup(executions, List.of(), 1));
    }

    private static float value(InferenceRequest request, String input) {
        return request.requireInput(input).data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
    }

    /** Adds each input to the sum of its sequence, and responds with it. */
    private static void sum(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            float sum = value(request, "SUM") + value(request, "IN");
            Shape shape = Shape.of(1, 1);
            request.state("NEXT_SUM")
                    .allocate(DataType.FP32, shape)
                    .data()
                    .set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, sum);
            request.response()
                    .allocate("OUT", DataType.FP32, shape)
                    .data()
                    .set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, sum);
        }
    }

    private RecordingObserver submit(long sequence, float value, boolean end) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        Sequence position = new Sequence(new Sequence.Id.Numeric(sequence), false, end);
        ScheduledRequest request = new ScheduledRequest(
                scope,
                null,
                Requests.to(model, memory)
                        .options(new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(position)))
                        .floats("IN", Shape.of(1, 1), value)
                        .of(1),
                observer,
                0);
        if (!source.offer(request)) {
            request.refuse(new dev.nereid.api.InferenceException(ErrorCode.UNAVAILABLE, "no slot"));
        }
        return observer;
    }

    private RecordingObserver submit(long sequence, float value) {
        return submit(sequence, value, false);
    }

    private static float result(RecordingObserver observer) {
        return observer.floats("OUT")[0];
    }

    @AfterEach
    void allIsReleased() {
        execution = BoundSourceTest::sum;
        List.of(1L, 2L, 3L).forEach(id -> submit(id, 0, true));
        boolean more = true;
        while (more) {
            more = worker.step();
        }
        assertThat(source.sequences()).isZero();
        for (RecordingObserver observer : observers) {
            observer.check();
            assertThat(observer.hasEnded()).isTrue();
            observer.close();
        }
        assertThat(instance.violations()).isEmpty();
        assertThat(scope.drain().count()).isZero();
        memory.close();
    }

    @Test
    void keepsAStateForEachSequence() {
        RecordingObserver one = submit(1, 5);
        RecordingObserver two = submit(2, 10);
        assertThat(worker.step()).isTrue();
        RecordingObserver oneMore = submit(1, 6);
        assertThat(worker.step()).isTrue();

        assertThat(result(one)).isEqualTo(5);
        assertThat(result(two)).isEqualTo(10);
        assertThat(result(oneMore)).isEqualTo(11);
        assertThat(ready).containsExactly(List.of(1f, 1f), List.of(0f, 1f));
        assertThat(scope.meter().read().executions().inferenceCount()).isEqualTo(3);
        assertThat(scope.meter().read().inferences().success().count()).isEqualTo(3);
        assertThat(scope.meter().read().executions().batches())
                .as("null requests count in the batch size alone")
                .extracting(BatchStatistics::batchSize)
                .containsExactly(2L);
    }

    @Test
    void takesTheNextRequestOfASequenceAfterTheOneBefore() {
        submit(1, 5);
        RecordingObserver next = submit(1, 6);

        worker.step();
        assertThat(next.hasEnded()).isFalse();
        worker.step();

        assertThat(result(next)).isEqualTo(11);
    }

    @Test
    void splitsTheStatesOfABatch() {
        execution = batch -> {
            Shape shape = Shape.of(batch.size(), 1);
            Tensor sums = batch.state("NEXT_SUM").allocate(DataType.FP32, shape);
            Tensor out = batch.allocate("OUT", DataType.FP32, shape);
            Tensor in = batch.gather("IN");
            Tensor before = batch.gather("SUM");
            for (int i = 0; i < batch.size(); i++) {
                float sum = in.data().getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i)
                        + before.data().getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i);
                sums.data().setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i, sum);
                out.data().setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i, sum);
            }
        };
        submit(1, 1);
        submit(2, 2);
        submit(3, 3);
        worker.step();
        submit(1, 10);
        submit(2, 20);
        worker.step();
        RecordingObserver third = submit(3, 30);
        RecordingObserver first = submit(1, 100);
        worker.step();

        assertThat(result(third)).isEqualTo(33);
        assertThat(result(first)).isEqualTo(111);
    }

    @Test
    void keepsTheStateOfAFailedRequestAndExecution() {
        submit(1, 5);
        submit(2, 7);
        worker.step();
        execution = batch -> {
            sum(batch);
            batch.requests().getFirst().fail(new BackendException(ErrorCode.INTERNAL, "failed"));
        };
        RecordingObserver failed = submit(1, 100);
        RecordingObserver fine = submit(2, 1);
        worker.step();
        execution = batch -> {
            sum(batch);
            throw new BackendException(ErrorCode.INTERNAL, "failed");
        };
        submit(1, 1_000);
        worker.step();
        execution = BoundSourceTest::sum;
        RecordingObserver last = submit(1, 1);
        worker.step();

        assertThat(failed.error().code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(result(fine)).isEqualTo(8);
        assertThat(result(last)).isEqualTo(6);
    }

    @Test
    void executesAgainWithTheNewState() {
        execution = batch -> {
            sum(batch);
            for (InferenceRequest request : batch.requests()) {
                if (value(request, "SUM") < 15) {
                    request.reschedule();
                }
            }
        };
        RecordingObserver one = submit(1, 5);
        RecordingObserver next = submit(1, 100);
        for (int i = 0; i < 4; i++) {
            assertThat(one.hasEnded()).isFalse();
            worker.step();
        }
        assertThat(result(one)).isEqualTo(20);
        assertThat(next.hasEnded()).isFalse();
        worker.step();
        assertThat(result(next)).isEqualTo(120);
    }

    /** As a queue that has no memory for its entry. */
    @Test
    void failsIfThereIsNoPlaceToWaitAgain() {
        execution = batch -> {
            sum(batch);
            batch.requests().getFirst().reschedule();
        };
        source.failing = true;
        RecordingObserver observer = submit(1, 5);
        RecordingObserver next = submit(1, 6);

        worker.step();
        assertThat(observer.error().code()).isEqualTo(ErrorCode.INTERNAL);
        source.failing = false;
        execution = BoundSourceTest::sum;
        worker.step();

        assertThat(result(next))
                .as("the state of the failed request is dropped")
                .isEqualTo(6);
    }

    @Test
    void executesTheOthersAgainAfterAnErrorOfTheirSource() {
        execution = batch -> {
            sum(batch);
            batch.requests().forEach(InferenceRequest::reschedule);
        };
        RecordingObserver one = submit(1, 1);
        RecordingObserver two = submit(2, 2);
        source.failingOnce = true;
        worker.step();
        execution = BoundSourceTest::sum;

        worker.step();

        assertThat(result(one)).isEqualTo(2);
        assertThat(result(two)).isEqualTo(4);
    }

    @Test
    void dropsWhatANullRequestGets() {
        execution = batch -> {
            sum(batch);
            for (InferenceRequest request : batch.requests()) {
                if (request.isNullRequest()) {
                    request.reschedule();
                    request.fail(new BackendException(ErrorCode.INTERNAL, "dropped"));
                    assertThat(request.sequence()).isEmpty();
                    assertThat(request.id()).isEmpty();
                }
            }
        };
        submit(1, 5);
        submit(2, 5);
        worker.step();
        RecordingObserver one = submit(1, 5);
        worker.step();

        assertThat(result(one)).isEqualTo(10);
        assertThat(scope.meter().read().inferences().fail().count()).isZero();
    }

    @Test
    void storesTheStateOfACancelledRequest() {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        execution = batch -> {
            sum(batch);
            cancelled.getFirst().cancel();
        };
        Sequence position = new Sequence(new Sequence.Id.Numeric(1), false, false);
        ScheduledRequest request = new ScheduledRequest(
                scope,
                null,
                Requests.to(model, memory)
                        .options(new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(position)))
                        .floats("IN", Shape.of(1, 1), 5)
                        .of(1),
                observer,
                0);
        cancelled.add(request);
        source.offer(request);
        worker.step();
        observer.assertError(ErrorCode.CANCELLED, "request was cancelled");
        execution = BoundSourceTest::sum;
        RecordingObserver next = submit(1, 1);
        worker.step();

        assertThat(result(next)).isEqualTo(6);
    }

    private final List<ScheduledRequest> cancelled = new ArrayList<>();

    @Test
    void takesNoNewSequencesOnceRetired() {
        RecordingObserver first = submit(1, 5);
        worker.step();
        worker.retire();
        RecordingObserver refused = submit(2, 5);
        RecordingObserver second = submit(1, 6);
        Thread own = Thread.ofPlatform().daemon(true).start(worker);
        second.await();
        Threads.awaitAsleep(own);
        assertThat(instance.isClosed()).isFalse();

        submit(1, 0, true).await();
        observers.forEach(RecordingObserver::close);
        Threads.await("closed", instance::isClosed);

        assertThat(first.hasEnded()).isTrue();
        refused.assertError(ErrorCode.UNAVAILABLE, "no slot");
    }

    @Test
    void awaitsTheEndOfADeferredExecutionBeforeTheNextOfItsSequence() {
        List<DeferredExecution> deferred = new ArrayList<>();
        execution = batch -> {
            sum(batch);
            deferred.add(batch.defer());
        };
        submit(1, 5);
        worker.step();
        RecordingObserver next = submit(1, 6);
        assertThat(worker.step()).isFalse();

        deferred.getFirst().complete();
        assertThat(worker.step()).isTrue();
        deferred.get(1).complete();

        assertThat(result(next)).isEqualTo(11);
    }

    @Test
    void keepsValuesThatLieElsewhere() {
        List<String> released = new ArrayList<>();
        MemorySegment own = Arena.global().allocate(Float.BYTES, 64);
        own.set(ValueLayout.JAVA_FLOAT, 0, 40);
        execution = batch -> {
            InferenceRequest request = batch.requests().getFirst();
            Tensor value = value(request, "SUM") == 0
                    ? Tensor.of(DataType.FP32, Shape.of(1, 1), own)
                    : request.requireInput(value(request, "SUM") == 40 ? "IN" : "SUM");
            request.state("NEXT_SUM").put(value, () -> released.add("released"));
            FakeInstance.copy(batch);
        };
        submit(1, 7);
        worker.step();
        assertThat(released).isEmpty();
        submit(1, 8);
        worker.step();
        assertThat(released).hasSize(2);
        submit(1, 9);
        worker.step();
        assertThat(released).hasSize(3);
        execution = BoundSourceTest::sum;
        RecordingObserver last = submit(1, 1);
        worker.step();

        assertThat(result(last)).isEqualTo(9);
    }

    @Test
    void waitsForTheWorkOfAValue() {
        MemorySegment own = Arena.global().allocate(Float.BYTES, 64);
        execution = batch -> {
            Tensor value = Tensor.of(DataType.FP32, Shape.of(1, 1), own)
                    .withFence(new Work(() -> own.set(ValueLayout.JAVA_FLOAT, 0, 40)));
            batch.requests().getFirst().state("NEXT_SUM").put(value, () -> {});
            FakeInstance.copy(batch);
        };
        submit(1, 7);
        worker.step();
        execution = batch -> {
            assertThat(batch.requests().getFirst().requireInput("SUM").fence()).isEmpty();
            sum(batch);
        };
        RecordingObserver last = submit(1, 1);
        worker.step();
        assertThat(result(last)).isEqualTo(41);

        BackendException lost = new BackendException(ErrorCode.UNAVAILABLE, "device lost");
        List<String> released = new ArrayList<>();
        execution = batch -> {
            Tensor value = Tensor.of(DataType.FP32, Shape.of(1, 1), own).withFence(new Work(() -> {
                throw lost;
            }));
            batch.requests().getFirst().state("NEXT_SUM").put(value, () -> released.add("released"));
        };
        RecordingObserver failed = submit(1, 1);
        worker.step();
        failed.assertError(ErrorCode.UNAVAILABLE, "device lost");
        assertThat(released).containsExactly("released");
    }

    /** Work of a device that a test does. */
    private record Work(Step step) implements Fence {
        private interface Step {
            void run();
        }

        @Override
        public boolean isDone() {
            return false;
        }

        @Override
        public boolean await(Duration timeout) {
            step.run();
            return true;
        }
    }

    @Test
    void sharesTheMemoryOfAnOutput() {
        execution = batch -> {
            Tensor out = batch.requests().getFirst().response().allocate("OUT", DataType.FP32, Shape.of(1, 1));
            out.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, 30);
            batch.requests().getFirst().state("NEXT_SUM").put(out, () -> {});
        };
        submit(1, 7);
        worker.step();
        observers.getFirst().close();
        execution = BoundSourceTest::sum;
        RecordingObserver last = submit(1, 1);
        worker.step();

        assertThat(result(last)).isEqualTo(31);
    }

    @Test
    void refusesWrongValues() {
        List<String> released = new ArrayList<>();
        execution = batch -> {
            InferenceRequest request = batch.requests().getFirst();
            SequenceState state = request.state("NEXT_SUM");
            Shape shape = Shape.of(1, 1);
            assertThat(request.state("NEXT_SUM")).isSameAs(state);
            assertThatThrownBy(() -> request.state("OTHER"))
                    .hasMessageStartingWith("state 'OTHER' is not a valid state name.");
            assertThatThrownBy(() -> state.allocate(DataType.INT32, shape)).hasMessageContaining("type INT32");
            assertThatThrownBy(() -> state.allocate(DataType.FP32, Shape.of(2, 1)))
                    .hasMessageContaining("expected: [1,1]");
            assertThatThrownBy(() -> state.allocateBytes(shape, 4)).hasMessageContaining("type BYTES");
            assertThatThrownBy(() -> state.allocate(DataType.FP32, shape, new MemoryPlace(MemoryPlace.Kind.GPU, 0)))
                    .hasMessageContaining("no memory in");
            Tensor wrong = Tensor.of(DataType.FP32, Shape.of(1), MemorySegment.ofArray(new float[1]));
            assertThatThrownBy(() -> state.put(wrong, () -> released.add("wrong")))
                    .isInstanceOf(BackendException.class);
            Tensor heap = Tensor.of(DataType.FP32, shape, MemorySegment.ofArray(new float[1]));
            assertThatThrownBy(() -> state.put(heap, () -> released.add("heap")))
                    .hasMessageContaining("lies in a Java array");
            try (Arena confined = Arena.ofConfined()) {
                Tensor own = Tensor.of(DataType.FP32, shape, confined.allocate(Float.BYTES));
                assertThatThrownBy(() -> state.put(own, () -> released.add("confined")))
                        .hasMessageContaining("lies in a confined arena");
            }
            state.allocate(DataType.FP32, shape, MemoryPlace.HOST);
            assertThatThrownBy(() -> state.allocate(DataType.FP32, shape)).hasMessageContaining("given twice");
            FakeInstance.copy(batch);
        };
        submit(1, 7);
        worker.step();

        assertThat(released).containsExactly("wrong", "heap", "confined");
        assertThat(observers.getFirst().responses()).hasSize(1);
    }

    @Test
    void refusesAStateThatIsWrittenBothWays() {
        Shape one = Shape.of(1, 1);
        execution = batch -> {
            batch.requests().get(1).state("NEXT_SUM").allocate(DataType.FP32, one);
            assertThatThrownBy(() -> batch.state("NEXT_SUM").allocate(DataType.FP32, Shape.of(2, 1)))
                    .hasMessageContaining("one way or the other");
            batch.state("TEXT").allocateBytes(Shape.of(2, 1), 8);
            assertThatThrownBy(() -> batch.requests().getFirst().state("TEXT").allocateBytes(one, 4))
                    .hasMessageContaining("one way or the other");
            FakeInstance.copy(batch);
        };
        submit(1, 7);
        submit(2, 7);
        worker.step();

        assertThat(observers).allMatch(observer -> observer.responses().size() == 1);
    }

    /** Otherwise the client would see a success, and some of the states would be stored. */
    @Test
    void failsRequestsWhoseStatesCannotBeCut() {
        submit(1, 1);
        submit(2, 2);
        worker.step();
        execution = batch -> {
            batch.state("NEXT_SUM").allocate(DataType.FP32, Shape.of(2, 1));
            batch.state("TEXT").allocateBytes(Shape.of(2, 1), 3);
            FakeInstance.copy(batch);
        };
        RecordingObserver failed = submit(1, 1);
        submit(2, 2);
        worker.step();
        execution = BoundSourceTest::sum;
        RecordingObserver next = submit(1, 1);
        worker.step();

        assertThat(failed.error().code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(failed.error().publicMessage()).contains("state 'TEXT'").contains("3 bytes");
        assertThat(result(next)).isEqualTo(2);
    }

    @Test
    void fillsThePlaceOfARequestWhoseInputsCannotBeMoved() {
        submit(1, 1);
        submit(2, 2);
        worker.step();
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        Tensor elsewhere = Tensor.of(
                DataType.FP32,
                Shape.of(1, 1),
                Arena.global().allocate(Float.BYTES),
                new MemoryPlace(MemoryPlace.Kind.GPU, 0));
        Sequence position = new Sequence(new Sequence.Id.Numeric(1), false, false);
        source.offer(new ScheduledRequest(
                scope,
                null,
                Requests.to(model, memory)
                        .options(new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(position)))
                        .input("IN", elsewhere)
                        .of(1),
                observer,
                0));
        RecordingObserver second = submit(2, 20);
        worker.step();

        assertThat(observer.error().code()).isEqualTo(ErrorCode.UNSUPPORTED);
        assertThat(ready).containsExactly(List.of(1f, 1f), List.of(0f, 1f));
        assertThat(result(second)).isEqualTo(22);
    }
}
