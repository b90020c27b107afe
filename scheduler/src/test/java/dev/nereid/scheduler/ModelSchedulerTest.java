package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class ModelSchedulerTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final ModelSettings model = ModelSettings.builder("m", 7)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    @Test
    void completesOnAThreadNamedAfterTheInstance() {
        List<String> seen = new ArrayList<>();
        FakeInstance instance = new FakeInstance(batch -> {
            seen.add(Thread.currentThread().getName());
            FakeInstance.copy(batch);
        });
        RecordingObserver observer = new RecordingObserver();

        try (ModelScheduler scheduler = start(instance)) {
            scheduler.submit(request("a"), observer);
            assertThat(observer.await().floats("OUT")).containsExactly(1, 2);
            assertThat(observer.response().id()).isEqualTo("a");
            assertThat(observer.response().model()).isEqualTo("m");
            assertThat(observer.response().version()).isEqualTo(7);
            assertThat(observer.response().isFinal()).isTrue();
            assertThat(scheduler.inFlight()).isEqualTo(1);
            observer.close();
            while (scheduler.inFlight() > 0) { // the execution may be about to end
                Thread.onSpinWait();
            }
        }

        assertThat(seen).containsExactly("instance/m/7/i0");
    }

    @Test
    void executesWhatIsQueuedThenClosesAndRefusesTheRest() {
        CountDownLatch busy = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        FakeInstance instance = new FakeInstance(batch -> {
            busy.countDown();
            Latches.await(go);
            FakeInstance.copy(batch);
        });
        ModelScheduler scheduler = start(instance);
        List<RecordingObserver> observers = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            observers.add(new RecordingObserver());
            scheduler.submit(request("r" + i), observers.get(i));
        }
        Latches.await(busy);
        List<Thread> closers =
                List.of(Thread.startVirtualThread(scheduler::close), Thread.startVirtualThread(scheduler::close));
        while (scheduler.isReady()) {
            Thread.onSpinWait();
        }
        RecordingObserver late = new RecordingObserver();
        scheduler.submit(request("late"), late);
        RecordingObserver unnamed = new RecordingObserver();
        scheduler.submit(request(""), unnamed);

        late.assertError(
                ErrorCode.UNAVAILABLE,
                "[request id: late] Server is stopping, scheduler for model has stopped accepting new inference requests");
        assertThat(unnamed.error().publicMessage()).startsWith("[request id: <id_unknown>] ");
        go.countDown();
        observers.forEach(observer -> observer.await().response());
        assertThat(instance.isClosed()).isFalse(); // responses are still read
        observers.forEach(RecordingObserver::close);
        closers.forEach(ModelSchedulerTest::join);
        assertThat(instance.isClosed()).isTrue();
        assertThat(instance.violations()).isEmpty();
        scheduler.close();
        assertThat(scheduler.inFlight()).isZero();
    }

    @Test
    void closesTheInstanceOnItsThreadAfterTheLastDeferredExecution() {
        BlockingQueue<DeferredExecution> deferred = new LinkedBlockingQueue<>();
        List<String> closedBy = new ArrayList<>();
        FakeInstance inner = new FakeInstance(batch -> deferred.add(batch.defer()));
        ModelScheduler scheduler = ModelScheduler.start(
                new ModelPlan(model, BatchingPolicy.NONE),
                List.of(new Instance("i0", Device.CPU, new ClosingOn(inner, closedBy))),
                environment());
        RecordingObserver observer = new RecordingObserver();
        scheduler.submit(request("a"), observer);
        DeferredExecution execution = take(deferred);

        Thread closer = Thread.startVirtualThread(scheduler::close);
        while (scheduler.isReady()) {
            Thread.onSpinWait();
        }

        assertThat(observer.isSilent()).isTrue();
        assertThat(inner.isClosed()).isFalse();
        execution.complete();
        assertThat(observer.await().response().outputs()).isEmpty();
        observer.close();
        join(closer);
        assertThat(closedBy).containsExactly("instance/m/7/i0");
    }

    @Test
    void hasOneThreadForEachInstanceAndNoOther() {
        assertThat(threadsOf(EarlyThreads.WARMUP))
                .containsExactly("instance/m/7/a", "instance/m/7/b", "instance/m/7/c", "instance/m/7/d");
        assertThat(threadsOf(List.of())).isEmpty();
    }

    /** Returns the instance threads after the start of a model with four instances. */
    private List<String> threadsOf(List<Warmup.Sample> warmup) {
        List<Instance> slots = List.of(
                new Instance("a", Device.CPU, new FakeInstance(FakeInstance::copy)),
                new Instance("b", Device.CPU, new FakeInstance(FakeInstance::copy)),
                new Instance("c", new Device(Device.Kind.GPU, 0), new FakeInstance(FakeInstance::copy)),
                new Instance("d", new Device(Device.Kind.GPU, 0), new FakeInstance(FakeInstance::copy)));

        List<String> started;
        try (ModelScheduler scheduler =
                ModelScheduler.start(new ModelPlan(model, BatchingPolicy.NONE).with(warmup), slots, environment())) {
            assertThat(scheduler.isReady()).isTrue();
            started = instanceThreads();
        }

        assertThat(instanceThreads()).isEmpty();
        return started;
    }

    private static List<String> instanceThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("instance/m/7/"))
                .sorted()
                .toList();
    }

    @Test
    void failsAWholeBatchWithItsError() {
        CountDownLatch queued = new CountDownLatch(1);
        FakeInstance instance = new FakeInstance(batch -> {
            Latches.await(queued);
            throw new BackendException(
                    ErrorCode.UNAVAILABLE, "none of " + batch.requests().size());
        });
        List<RecordingObserver> observers = new ArrayList<>();

        try (ModelScheduler scheduler = start(instance)) {
            for (int i = 0; i < 5; i++) {
                observers.add(new RecordingObserver());
                scheduler.submit(request("r" + i), observers.get(i));
            }
            queued.countDown();
            observers.forEach(RecordingObserver::await);
        }

        int responded = 0;
        for (List<String> batch : instance.batches()) {
            for (int i = 0; i < batch.size(); i++) {
                observers.get(responded++).assertError(ErrorCode.UNAVAILABLE, "none of " + batch.size());
            }
        }
        assertThat(responded).isEqualTo(5);
        assertThat(instance.batches()).anyMatch(batch -> batch.size() > 1);
    }

    @Test
    void completesRequestsThatABackendLeftOpen() {
        FakeInstance instance = new FakeInstance(batch -> {});

        try (ModelScheduler scheduler = start(instance)) {
            RecordingObserver observer = run(scheduler);
            assertThat(observer.response().outputs()).isEmpty();
            assertThat(observer.response().isFinal()).isTrue();
            observer.close();
        }
    }

    /** Each execution continues only when four are in progress, and fails if there ever are five. */
    @Test
    void executesAsManyAtATimeAsThereAreInstances() {
        CyclicBarrier four = new CyclicBarrier(4);
        AtomicInteger executing = new AtomicInteger();
        FakeInstance.Execution execution = batch -> {
            try {
                if (executing.incrementAndGet() > 4) {
                    throw new IllegalStateException("more than four");
                }
                four.await(30, TimeUnit.SECONDS);
                FakeInstance.copy(batch);
            } catch (InterruptedException | BrokenBarrierException | TimeoutException e) {
                throw new IllegalStateException("fewer than four", e);
            } finally {
                executing.decrementAndGet();
            }
        };
        List<FakeInstance> instances =
                Stream.generate(() -> new FakeInstance(execution)).limit(4).toList();
        List<Instance> slots = instances.stream()
                .map(instance -> new Instance("i", Device.CPU, instance))
                .toList();
        List<RecordingObserver> observers = new ArrayList<>();

        try (ModelScheduler scheduler =
                ModelScheduler.start(new ModelPlan(model, BatchingPolicy.NONE), slots, environment())) {
            for (int i = 0; i < 64; i++) {
                RecordingObserver observer = new RecordingObserver();
                observers.add(observer);
                scheduler.submit(request("r" + i), observer);
            }
            observers.forEach(observer -> observer.await().close());
        }
        assertThat(observers)
                .allSatisfy(observer -> assertThat(observer.responses()).hasSize(1));
        assertThat(instances)
                .allSatisfy(instance -> assertThat(instance.violations()).isEmpty());
    }

    @Test
    void goesOnAfterAnythingThatABackendThrows() {
        List<FakeInstance.Execution> executions = new ArrayList<>(List.of(
                batch -> {
                    throw new BackendException(ErrorCode.UNSUPPORTED, "not here");
                },
                batch -> {
                    throw new IllegalStateException("odd");
                },
                batch -> {
                    throw new LinkageError();
                },
                batch -> {
                    throw new StackOverflowError("deep");
                },
                batch -> {
                    throw new OutOfMemoryError("Java heap space");
                },
                FakeInstance::copy));
        FakeInstance instance =
                new FakeInstance(batch -> executions.removeFirst().execute(batch));

        try (ModelScheduler scheduler = start(instance)) {
            run(scheduler).assertError(ErrorCode.UNSUPPORTED, "not here");
            run(scheduler)
                    .assertError(
                            ErrorCode.INTERNAL, "backend of model 'm' failed unexpectedly: IllegalStateException: odd");
            run(scheduler).assertError(ErrorCode.INTERNAL, "backend of model 'm' failed unexpectedly: LinkageError");
            run(scheduler)
                    .assertError(
                            ErrorCode.INTERNAL, "backend of model 'm' failed unexpectedly: StackOverflowError: deep");
            run(scheduler)
                    .assertError(
                            ErrorCode.INTERNAL,
                            "backend of model 'm' failed unexpectedly: OutOfMemoryError: Java heap space");
            RecordingObserver good = run(scheduler);
            assertThat(good.response().outputs()).hasSize(1);
            good.close();
        }
        assertThat(instance.violations()).isEmpty();
    }

    @Test
    void passesTheTimeoutToTheBackend() {
        List<Long> reported = new CopyOnWriteArrayList<>();
        for (long micros : new long[] {0, 1_500, -1}) {
            try (ModelScheduler scheduler = start(new FakeInstance(batch -> {
                reported.add(batch.requests().getFirst().timeoutMicros());
                FakeInstance.copy(batch);
            }))) {
                RecordingObserver observer = new RecordingObserver();
                scheduler.submit(
                        Requests.to(model, memory)
                                .timeoutMicros(micros)
                                .floats("IN", Shape.of(1, 2), 1)
                                .of(1),
                        observer);
                observer.await().response();
                observer.close();
            }
        }

        assertThat(reported).as("as the client wrote it, unsigned").containsExactly(0L, 1_500L, -1L);
    }

    @Test
    void isReadyWhileItsInstanceIsReady() {
        FakeInstance instance = new FakeInstance(FakeInstance::copy);
        ModelScheduler scheduler = start(instance);

        assertThat(scheduler.isReady()).isTrue();
        instance.readiness(() -> CompletableFuture.failedStage(new BackendException(ErrorCode.INTERNAL, "broken")));
        assertThat(scheduler.isReady()).isFalse();
        instance.readiness(() -> CompletableFuture.completedStage(null));
        scheduler.close();
        assertThat(scheduler.isReady()).isFalse();
    }

    @Test
    void needsAnInstance() {
        assertThatIllegalArgumentException()
                .isThrownBy(
                        () -> ModelScheduler.start(new ModelPlan(model, BatchingPolicy.NONE), List.of(), environment()))
                .withMessage("instances: none (expected: at least one)");
    }

    /** An instance that notes the thread that closes it. */
    private record ClosingOn(FakeInstance inner, List<String> closedBy) implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            inner.execute(batch);
        }

        @Override
        public void close() {
            closedBy.add(Thread.currentThread().getName());
            inner.close();
        }
    }

    @Test
    @SuppressWarnings("NullAway") // what is no policy stands for whatever goes wrong before the first thread runs
    void closesTheInstancesWhenItCannotStart() {
        FakeInstance one = new FakeInstance(batch -> {});
        FakeInstance other = new FakeInstance(batch -> {});
        List<Instance> slots = List.of(new Instance("i0", Device.CPU, one), new Instance("i1", Device.CPU, other));

        assertThatNullPointerException().isThrownBy(() -> ModelScheduler.start(null, slots, environment()));

        assertThat(one.isClosed()).isTrue();
        assertThat(other.isClosed()).isTrue();
        assertThat(one.violations()).isEmpty();
    }

    private ModelScheduler start(FakeInstance instance) {
        return ModelScheduler.start(
                new ModelPlan(model, new BatchingPolicy(true, List.of(), 0)),
                List.of(new Instance("i0", Device.CPU, instance)),
                environment());
    }

    private SchedulerEnvironment environment() {
        return new SchedulerEnvironment(memory, System::nanoTime, timer);
    }

    private RecordingObserver run(ModelScheduler scheduler) {
        RecordingObserver observer = new RecordingObserver();
        scheduler.submit(request("x"), observer);
        return observer.await();
    }

    private CheckedRequest request(String id) {
        return Requests.to(model, memory).id(id).floats("IN", Shape.of(1, 2), 1).of(1);
    }

    private static <T> T take(BlockingQueue<T> queue) {
        try {
            T taken = queue.poll(30, TimeUnit.SECONDS);
            assertThat(taken).isNotNull();
            return taken;
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void join(Thread thread) {
        try {
            assertThat(thread.join(Duration.ofSeconds(30))).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
