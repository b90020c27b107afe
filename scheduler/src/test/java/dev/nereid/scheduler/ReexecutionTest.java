package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.api.Cancellation;
import dev.nereid.api.RequestOptions;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.statistics.MeterReading;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Requests that are executed more than once, step by step. */
@Timeout(60)
final class ReexecutionTest {
    private static final String STOPPED =
            "Server is stopping, scheduler for model has stopped accepting new inference requests";

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final List<RecordingObserver> observers = new ArrayList<>();

    /** The next executions; the last is repeated. */
    private final Deque<FakeInstance.Execution> executions = new ConcurrentLinkedDeque<>();

    private final List<InferenceRequest> seen = new CopyOnWriteArrayList<>();
    private final FakeInstance instance = new FakeInstance(this::execute);
    private final FakeInstance other = new FakeInstance(this::execute);
    private boolean decoupled;
    private PriorityPolicy priorities = PriorityPolicy.NONE;
    private int instances = 1;
    private final AtomicReference<SteppedScheduler> made = new AtomicReference<>();

    private SteppedScheduler scheduler() {
        SteppedScheduler current = made.get();
        if (current == null) {
            current = SteppedScheduler.iterative(
                    model(decoupled),
                    new BatchPlanner(8, List.of(), 0),
                    priorities,
                    memory,
                    ExecutionTraits.DEFAULT,
                    instances == 1 ? new FakeInstance[] {instance} : new FakeInstance[] {instance, other});
            made.set(current);
        }
        return current;
    }

    private static ModelSettings model(boolean decoupled) {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .decoupled(decoupled)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
    }

    private void execute(Batch batch) {
        seen.addAll(batch.requests());
        FakeInstance.Execution next = executions.size() > 1 ? executions.poll() : executions.getFirst();
        next.execute(batch);
    }

    private static void again(Batch batch) {
        FakeInstance.copy(batch);
        batch.requests().forEach(InferenceRequest::reschedule);
    }

    /** The executions of the backend, one after the other. */
    @SafeVarargs
    @SuppressWarnings("varargs")
    private void backend(FakeInstance.Execution... these) {
        executions.addAll(List.of(these));
    }

    private ScheduledRequest submit(String id) {
        return submit(id, RequestOptions.DEFAULT);
    }

    private ScheduledRequest submit(String id, RequestOptions options) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        return (ScheduledRequest) scheduler()
                .submit(
                        Requests.to(model(decoupled), memory)
                                .id(id)
                                .options(options)
                                .floats("IN", Shape.of(1, 2), 1)
                                .of(1),
                        observer);
    }

    private MeterReading figures() {
        return scheduler().model.meter().read();
    }

    @AfterEach
    void allIsReleased() {
        for (RecordingObserver observer : observers) {
            observer.check();
            assertThat(observer.hasEnded()).as("completed").isTrue();
            observer.close();
        }
        assertThat(instance.violations()).isEmpty();
        assertThat(other.violations()).isEmpty();
        assertThat(scheduler().inFlight()).as("in flight").isZero();
        assertThat(scheduler().queue.waiting()).as("waiting").isZero();
        memory.close();
    }

    @Test
    void executesAgainUntilTheBackendIsDone() {
        backend(ReexecutionTest::again, ReexecutionTest::again, FakeInstance::copy);
        submit("a");

        scheduler().step();
        assertThat(observers.getFirst().isSilent()).isTrue();
        assertThat(scheduler().queue.waiting()).isEqualTo(1);
        assertThat(memory.buffersInUse()).as("the input alone").isEqualTo(1);
        scheduler().drain();

        assertThat(observers.getFirst().floats("OUT")).containsExactly(1, 2);
        assertThat(instance.batches()).hasSize(3);
        assertThat(figures().executions().executionCount()).isEqualTo(3);
        assertThat(figures().executions().inferenceCount()).isEqualTo(1);
        assertThat(figures().inferences().success().count()).isEqualTo(1);
    }

    @Test
    void goesBehindTheOthersOfItsLevel() {
        backend(ReexecutionTest::again, FakeInstance::copy);
        submit("a");
        scheduler().step();
        submit("b");
        submit("c");
        backend(FakeInstance::copy);

        scheduler().drain();

        assertThat(instance.batches()).containsExactly(List.of("a"), List.of("a", "b", "c"));
    }

    @Test
    void returnsSomeRequestsOfABatch() {
        backend(
                batch -> {
                    FakeInstance.copy(batch);
                    batch.requests().get(1).reschedule();
                },
                FakeInstance::copy);
        submit("a");
        submit("b");
        submit("c");

        scheduler().step();
        assertThat(observers).extracting(RecordingObserver::hasEnded).containsExactly(true, false, true);
        scheduler().drain();

        assertThat(instance.batches()).containsExactly(List.of("a", "b", "c"), List.of("b"));
    }

    @Test
    void countsTheSumOfAllWaits() {
        backend(ReexecutionTest::again, FakeInstance::copy);
        submit("a");
        scheduler().clock.advanceNanos(100);
        scheduler().step();
        scheduler().clock.advanceNanos(1_000);
        scheduler().drain();

        assertThat(figures().inferences().queue().nanos()).isEqualTo(1_100);
        assertThat(figures().inferences().queue().count()).isEqualTo(1);
    }

    @Test
    void endsTheStartOfASequenceWithItsFirstExecution() {
        List<Optional<Sequence>> positions = new ArrayList<>();
        FakeInstance.Execution listen =
                batch -> positions.add(batch.requests().getFirst().sequence());
        backend(
                batch -> {
                    listen.execute(batch);
                    again(batch);
                },
                batch -> {
                    listen.execute(batch);
                    FakeInstance.copy(batch);
                });
        Sequence.Id id = new Sequence.Id.Numeric(7);
        submit("a", new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(new Sequence(id, true, true))));

        scheduler().drain();

        assertThat(positions)
                .containsExactly(Optional.of(new Sequence(id, true, true)), Optional.of(new Sequence(id, false, true)));
    }

    @Test
    void failsWithTheSecondExecution() {
        backend(ReexecutionTest::again, batch -> {
            batch.requests().getFirst().reschedule();
            throw new BackendException(ErrorCode.INTERNAL, "second");
        });
        submit("a");

        scheduler().drain();

        observers.getFirst().assertError(ErrorCode.INTERNAL, "second");
        assertThat(instance.batches()).hasSize(2);
    }

    @Test
    void doesNotExecuteAFailedRequestAgain() {
        backend(batch -> {
            batch.requests().getFirst().reschedule();
            batch.requests().getFirst().fail(new BackendException(ErrorCode.NOT_FOUND, "failed"));
        });
        submit("a");

        scheduler().drain();

        observers.getFirst().assertError(ErrorCode.NOT_FOUND, "failed");
    }

    @Test
    void ignoresAnEarlierExecution() {
        List<String> ran = new ArrayList<>();
        backend(
                batch -> {
                    batch.requests().getFirst().onCancel(() -> ran.add("first"));
                    again(batch);
                },
                batch -> {
                    seen.getFirst().fail(new BackendException(ErrorCode.INTERNAL, "stale"));
                    seen.getFirst().onCancel(() -> ran.add("stale"));
                    batch.requests().getFirst().onCancel(() -> ran.add("second"));
                    ((Cancellation) requests.getFirst()).cancel();
                    FakeInstance.copy(batch);
                });
        requests.add(submit("a"));
        scheduler().step();
        seen.getFirst().fail(new BackendException(ErrorCode.INTERNAL, "stale"));
        assertThatIllegalStateException().isThrownBy(() -> seen.getFirst().reschedule());
        assertThatIllegalStateException().isThrownBy(() -> seen.getFirst().input("IN"));

        scheduler().drain();

        assertThat(ran).containsExactly("second");
        observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
    }

    private final List<ScheduledRequest> requests = new ArrayList<>();

    @Test
    void isRefusedTwiceInOneExecution() {
        backend(
                batch -> {
                    again(batch);
                    assertThatIllegalStateException()
                            .isThrownBy(() -> batch.requests().getFirst().reschedule())
                            .withMessageContaining("called twice");
                },
                FakeInstance::copy);
        submit("a");
        scheduler().drain();
    }

    @Test
    void isForIterativeModelsAlone() {
        backend(batch -> {
            assertThatIllegalStateException()
                    .isThrownBy(() -> batch.requests().getFirst().reschedule())
                    .withMessageContaining("iterative_sequence");
            FakeInstance.copy(batch);
        });
        made.set(new SteppedScheduler(model(false), BatchPlanner.oneByOne(), memory, instance));
        submit("a");
        scheduler().drain();
    }

    @Test
    void isNotForModelsThatPreserveTheOrder() {
        ModelPlan plan = new ModelPlan(model(false), new BatchingPolicy(true, List.of(), 0, true, PriorityPolicy.NONE));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> plan.withIterative(true))
                .withMessageContaining("preserves the order of responses");
        assertThat(scheduler().inFlight()).isZero();
    }

    @Test
    void continuesAfterADeferral() {
        List<DeferredExecution> deferred = new ArrayList<>();
        backend(
                batch -> {
                    deferred.add(batch.defer());
                    again(batch);
                },
                FakeInstance::copy);
        submit("a");
        scheduler().step();
        assertThat(scheduler().queue.waiting()).isZero();

        deferred.getFirst().complete();
        assertThat(scheduler().queue.waiting()).isEqualTo(1);
        deferred.getFirst().fail(new BackendException(ErrorCode.INTERNAL, "stale"));
        scheduler().drain();

        assertThat(observers.getFirst().responses()).hasSize(1);
    }

    @Test
    void completesAtOnceIfCancelledBetweenExecutions() {
        backend(ReexecutionTest::again);
        ScheduledRequest request = submit("a");
        scheduler().step();

        request.cancel();

        observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
        assertThat(memory.buffersInUse()).isZero();
        assertThat(scheduler().step()).isFalse();
    }

    @Test
    void isNotExecutedAgainAfterCancellation() {
        List<String> ran = new ArrayList<>();
        backend(batch -> {
            batch.requests().getFirst().onCancel(() -> ran.add("action"));
            requests.getFirst().cancel();
            again(batch);
        });
        requests.add(submit("a"));

        scheduler().drain();

        assertThat(ran).containsExactly("action");
        observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
        assertThat(instance.batches()).hasSize(1);
    }

    @Test
    void isAbandonedBetweenExecutions() {
        backend(ReexecutionTest::again);
        ScheduledRequest request = submit("a");
        scheduler().step();

        scheduler().queue.stop();
        scheduler().model.detached().abandon();
        request.abandon();

        observers.getFirst().assertError(ErrorCode.UNAVAILABLE, "[request id: a] " + STOPPED);
    }

    @Test
    void isAbandonedAtTheEndOfAnExecution() {
        backend(batch -> {
            scheduler().model.detached().abandon(); // the queue was drained before
            again(batch);
        });
        submit("a");

        scheduler().step();

        observers.getFirst().assertError(ErrorCode.UNAVAILABLE, "[request id: a] " + STOPPED);
    }

    @Test
    void isExecutedAgainAfterTheStop() {
        backend(
                batch -> {
                    scheduler().queue.stop();
                    again(batch);
                },
                ReexecutionTest::again,
                FakeInstance::copy);
        submit("a");

        scheduler().drain();

        assertThat(observers.getFirst().responses()).hasSize(1);
        assertThat(instance.batches()).hasSize(3);
    }

    @Test
    void failsIfNoInstanceIsLeft() {
        List<DeferredExecution> deferred = new ArrayList<>();
        backend(batch -> {
            deferred.add(batch.defer());
            again(batch);
        });
        submit("a");
        scheduler().step();
        scheduler().workers.getFirst().retire();
        Thread own = Thread.ofPlatform().daemon(true).start(scheduler().workers.getFirst());
        Threads.await("the worker is gone", () -> scheduler().workers.getFirst().isGone());
        Threads.awaitAsleep(own);

        deferred.getFirst().complete();

        assertThat(observers.getFirst().error().publicMessage())
                .startsWith("no instance of model 'm' version 1 is left");
        Threads.await("closed", instance::isClosed);
    }

    @Test
    void hasADeadlineAndNoTimeoutOrLimit() {
        priorities =
                new PriorityPolicy(0, 0, new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 100, false, 1), Map.of());
        backend(ReexecutionTest::again);
        long deadline = scheduler().clock.getAsLong() + 10_000;
        submit("a", new RequestOptions(0, 0, OptionalLong.of(deadline), Optional.empty()));
        scheduler().step();
        submit("b");
        observers.getLast().assertError(ErrorCode.UNAVAILABLE, "[request id: b] Exceeds maximum queue size");

        scheduler().advance(5_000);
        assertThat(observers.getFirst().isSilent()).isTrue();
        scheduler().step();
        assertThat(scheduler().queue.waiting()).isEqualTo(1);
        scheduler().advance(5_000);

        observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
    }

    @Test
    void isAdmittedToAFullQueue() {
        priorities = new PriorityPolicy(0, 0, new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 0, false, 1), Map.of());
        List<DeferredExecution> deferred = new ArrayList<>();
        backend(
                batch -> {
                    deferred.add(batch.defer());
                    again(batch);
                },
                FakeInstance::copy);
        submit("a");
        scheduler().step();
        submit("b");

        deferred.getFirst().complete();

        assertThat(scheduler().queue.waiting()).isEqualTo(2);
        scheduler().drain();
        assertThat(instance.batches()).containsExactly(List.of("a"), List.of("b", "a"));
    }

    @Test
    void freesARetiredInstanceForTheExecutionsOfOthers() {
        instances = 2;
        backend(ReexecutionTest::again);
        submit("a");
        scheduler().workers.getFirst().step();
        scheduler().workers.getFirst().retire();
        Thread.ofPlatform().daemon(true).start(scheduler().workers.getFirst());

        Threads.await("closed", instance::isClosed);

        assertThat(observers.getFirst().isSilent()).isTrue();
        executions.clear();
        backend(FakeInstance::copy);
        assertThat(scheduler().workers.get(1).step()).isTrue();
        assertThat(observers.getFirst().responses()).hasSize(1);
    }

    @Test
    void copiesMemoryOfTheClientForEachExecution(@TempDir Path directory) throws IOException {
        List<Float> read = new ArrayList<>();
        FakeInstance.Execution look =
                batch -> read.add(batch.gather("IN").data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0));
        backend(
                batch -> {
                    look.execute(batch);
                    again(batch);
                },
                batch -> {
                    look.execute(batch);
                    FakeInstance.copy(batch);
                });
        try (Arena arena = Arena.ofShared();
                FileChannel file = FileChannel.open(
                        directory.resolve("shm"),
                        StandardOpenOption.CREATE,
                        StandardOpenOption.READ,
                        StandardOpenOption.WRITE)) {
            MemorySegment shared = file.map(FileChannel.MapMode.READ_WRITE, 0, 8, arena);
            shared.set(ValueLayout.JAVA_FLOAT, 0, 1);
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            scheduler()
                    .submit(
                            Requests.to(model(false), memory)
                                    .input("IN", Tensor.of(DataType.FP32, Shape.of(1, 2), shared))
                                    .of(1),
                            observer);
            scheduler().step();
            assertThat(memory.buffersInUse()).as("copies").isZero();
            shared.set(ValueLayout.JAVA_FLOAT, 0, 2);
            scheduler().drain();
        }
        assertThat(read).containsExactly(1f, 2f);
    }

    /** Otherwise the memory of a stream would grow with the number of its executions. */
    @Test
    void copiesMemoryOfTheClientOnceForAStream(@TempDir Path directory) throws IOException {
        decoupled = true;
        instances = 2;
        backend(batch -> {
            assertThat(batch.gather("IN").data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0))
                    .isEqualTo(1);
            batch.requests().getFirst().sender();
            batch.requests().getFirst().reschedule();
        });
        try (Arena arena = Arena.ofShared()) {
            submitShared(directory, arena);
            for (int i = 0; i < 100; i++) {
                assertThat(scheduler().workers.get(i % 2).step()).isTrue();
                assertThat(memory.buffersInUse()).as("copies").isEqualTo(1);
            }
            scheduler().workers.getFirst().retire();
            Thread.ofPlatform().daemon(true).start(scheduler().workers.getFirst());
            Threads.await("closed", instance::isClosed);

            executions.clear();
            backend(batch -> batch.requests().getFirst().sender().complete());
            assertThat(scheduler().workers.get(1).step()).isTrue();
            assertThat(memory.buffersInUse()).as("copies").isZero();
        }
        assertThat(other.batches()).hasSize(51);
    }

    private void submitShared(Path directory, Arena arena) throws IOException {
        try (FileChannel file = FileChannel.open(
                directory.resolve("shm"),
                StandardOpenOption.CREATE,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
            MemorySegment shared = file.map(FileChannel.MapMode.READ_WRITE, 0, 8, arena);
            shared.set(ValueLayout.JAVA_FLOAT, 0, 1);
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            scheduler()
                    .submit(
                            Requests.to(model(decoupled), memory)
                                    .input("IN", Tensor.of(DataType.FP32, Shape.of(1, 2), shared))
                                    .of(1),
                            observer);
        }
    }

    @Test
    void completesSamplesOfAWarmup() throws InterruptedException {
        backend(ReexecutionTest::again);
        Warmup.Sample sample = new Warmup.Sample(
                "s",
                1,
                () -> List.of(Requests.to(model(false), memory)
                        .floats("IN", Shape.of(1, 2), 1)
                        .of(1)));
        try (TimerThread timer = new TimerThread(System::nanoTime);
                ModelScheduler scheduler = ModelScheduler.start(
                        new ModelPlan(model(false), BatchingPolicy.NONE)
                                .with(List.of(sample))
                                .withIterative(true),
                        List.of(new Instance("i0", Device.CPU, instance)),
                        new SchedulerEnvironment(memory, System::nanoTime, timer))) {
            scheduler.awaitWarm();
        }
        assertThat(instance.batches()).hasSize(1);
    }

    /** An instance of a stopped model stays while a request may come back. */
    @Test
    void executesADeferredRequestAgainAfterTheStop() throws InterruptedException {
        List<DeferredExecution> deferred = new CopyOnWriteArrayList<>();
        backend(
                batch -> {
                    again(batch);
                    deferred.add(batch.defer());
                },
                FakeInstance::copy);
        try (TimerThread timer = new TimerThread(System::nanoTime)) {
            ModelScheduler scheduler = ModelScheduler.start(
                    new ModelPlan(model(false), BatchingPolicy.NONE)
                            .withIterative(true)
                            .with(EarlyThreads.WARMUP),
                    List.of(new Instance("i0", Device.CPU, instance), new Instance("i1", Device.CPU, other)),
                    new SchedulerEnvironment(memory, System::nanoTime, timer));
            RecordingObserver observer = submit(scheduler);
            Threads.await("deferred", () -> !deferred.isEmpty());
            Thread closing = Thread.ofPlatform().start(scheduler::close);
            Threads.await("stopped", () -> !scheduler.isServing());
            Threads.awaitIdle(Threads.named("instance/m/1/i0"));
            Threads.awaitIdle(Threads.named("instance/m/1/i1"));
            assertThat(scheduler.problems()).isEmpty();

            deferred.getFirst().complete();

            assertThat(observer.await().responses()).hasSize(1);
            observer.close();
            closing.join();
            assertThat(instance.isClosed()).isTrue();
            assertThat(other.isClosed()).isTrue();
        }
    }

    /** Requests of an execution that never ends do not keep the other instances. */
    @Test
    void closesWithoutALostExecution() throws InterruptedException {
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch open = new CountDownLatch(1);
        backend(
                batch -> {
                    entered.countDown();
                    Latches.await(open);
                    again(batch);
                },
                FakeInstance::copy);
        try (TimerThread timer = new TimerThread(System::nanoTime)) {
            ModelScheduler scheduler = ModelScheduler.start(
                    new ModelPlan(model(false), BatchingPolicy.NONE).withIterative(true),
                    List.of(new Instance("i0", Device.CPU, instance), new Instance("i1", Device.CPU, other)),
                    new SchedulerEnvironment(memory, System::nanoTime, timer));
            RecordingObserver lost = submit(scheduler);
            Latches.await(entered);
            Thread first = Threads.named("instance/m/1/i0");
            Thread hanging = scheduler.instanceOn(first).isPresent() ? first : Threads.named("instance/m/1/i1");
            RecordingObserver fine = submit(scheduler).await();
            scheduler.drain();

            scheduler.loseExecutionOn(hanging);
            fine.close();
            scheduler.close();

            assertThat(lost.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(fine.responses()).hasSize(1);
            assertThat(scheduler.inFlight()).isZero();
            open.countDown();
            Threads.await("end of the execution", () -> memory.bytesInUse() == 0);
            assertThat(scheduler.inFlight()).isZero();
        }
    }

    private RecordingObserver submit(ModelScheduler scheduler) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(
                Requests.to(model(false), memory)
                        .floats("IN", Shape.of(1, 2), 1)
                        .of(1),
                observer);
        return observer;
    }

    // Streams

    private static ResponseSender send(Batch batch) {
        ResponseSender sender = batch.requests().getFirst().sender();
        var response = sender.newResponse();
        response.allocate("OUT", DataType.FP32, Shape.of(1, 2));
        sender.send(response);
        return sender;
    }

    @Test
    void keepsTheStreamOpen() {
        decoupled = true;
        List<ResponseSender> senders = new ArrayList<>();
        FakeInstance.Execution sendAndGoOn = batch -> {
            senders.add(send(batch));
            batch.requests().getFirst().reschedule();
        };
        backend(sendAndGoOn, sendAndGoOn, batch -> send(batch).complete());
        submit("a");

        scheduler().drain();

        RecordingObserver observer = observers.getFirst();
        assertThat(observer.responses()).hasSize(3);
        assertThat(observer.hasEnded()).isTrue();
        assertThat(senders.get(0)).isSameAs(senders.get(1));
    }

    @Test
    void endsTheStreamWithAnExecutionThatDoesNotUseIt() {
        decoupled = true;
        backend(
                batch -> {
                    send(batch);
                    batch.requests().getFirst().reschedule();
                },
                batch -> {});
        submit("a");

        scheduler().step();
        assertThat(observers.getFirst().hasEnded()).isFalse();
        scheduler().drain();

        assertThat(observers.getFirst().responses()).hasSize(1);
        assertThat(observers.getFirst().hasEnded()).isTrue();
    }

    @Test
    void failsAStreamThatTheSecondExecutionDoesNotUse() {
        decoupled = true;
        backend(
                batch -> {
                    send(batch);
                    batch.requests().getFirst().reschedule();
                },
                batch -> {
                    throw new BackendException(ErrorCode.INTERNAL, "second");
                });
        submit("a");

        scheduler().drain();

        assertThat(observers.getFirst().responses()).hasSize(1);
        observers.getFirst().assertError(ErrorCode.INTERNAL, "second");
    }

    @Test
    void completesByTheSenderBetweenExecutions() {
        decoupled = true;
        List<ResponseSender> senders = new ArrayList<>();
        backend(batch -> {
            senders.add(send(batch));
            batch.requests().getFirst().reschedule();
        });
        submit("a");
        scheduler().step();
        assertThat(scheduler().queue.waiting()).isEqualTo(1);

        senders.getFirst().complete();

        assertThat(observers.getFirst().hasEnded()).isTrue();
        assertThat(scheduler().queue.waiting()).isZero();
        assertThat(scheduler().step()).isFalse();
        assertThat(figures().inferences().success().count()).isEqualTo(1);
    }

    @Test
    void failsByTheSenderDuringALaterExecution() {
        decoupled = true;
        List<ResponseSender> senders = new ArrayList<>();
        backend(
                batch -> {
                    senders.add(send(batch));
                    batch.requests().getFirst().reschedule();
                },
                batch -> {
                    senders.getFirst().fail(new BackendException(ErrorCode.INTERNAL, "by the sender"));
                    assertThatIllegalStateException()
                            .isThrownBy(() -> batch.requests().getFirst().reschedule())
                            .withMessageContaining("the sender is ended");
                });
        submit("a");

        scheduler().drain();

        observers.getFirst().assertError(ErrorCode.INTERNAL, "by the sender");
    }

    @Test
    void doesNotExecuteAgainWhatItsSenderEnded() {
        decoupled = true;
        backend(batch -> {
            batch.requests().getFirst().reschedule();
            send(batch).complete();
        });
        submit("a");

        scheduler().drain();

        assertThat(instance.batches()).hasSize(1);
        assertThat(observers.getFirst().hasEnded()).isTrue();
    }

    @Test
    void releasesTheStreamOfACancelledRequest() {
        decoupled = true;
        backend(batch -> {
            send(batch);
            batch.requests().getFirst().reschedule();
        });
        ScheduledRequest request = submit("a");
        scheduler().step();

        request.cancel();

        observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
    }

    @Test
    void isDetachedAgainByALaterExecution() {
        decoupled = true;
        List<ResponseSender> senders = new ArrayList<>();
        backend(
                batch -> {
                    senders.add(send(batch));
                    batch.requests().getFirst().reschedule();
                },
                batch -> send(batch));
        submit("a");
        scheduler().drain();
        assertThat(observers.getFirst().hasEnded()).isFalse();
        assertThat(scheduler().inFlight()).isEqualTo(1);

        scheduler().model.detached().abandonAll();

        assertThat(observers.getFirst().error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(scheduler().inFlight()).isEqualTo(1);
        senders.getFirst().complete();
    }
}
