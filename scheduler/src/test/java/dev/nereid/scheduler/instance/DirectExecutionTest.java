package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.EarlyThreads;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.Latches;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerDelay;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.Threads;
import dev.nereid.scheduler.TriedScheduler;
import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Instances of short executions, run by the threads that submit requests. */
@Timeout(60)
final class DirectExecutionTest {
    private static final String OWN_THREAD = "instance/m/1/i0";

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeClock clock = new FakeClock();
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final List<String> threads = new CopyOnWriteArrayList<>();
    private final List<RecordingObserver> observers = new ArrayList<>();
    private Instance.ThreadPlacement placement = Instance.ThreadPlacement.ANYWHERE;
    private FakeInstance.Execution execution = FakeInstance::copy;
    private final FakeInstance instance = new FakeInstance(batch -> {
        threads.add(Thread.currentThread().getName());
        execution.execute(batch);
    });

    @AfterEach
    void everythingWasGivenBack() {
        observers.forEach(RecordingObserver::check);
        assertThat(instance.violations()).isEmpty();
        assertThat(instance.isClosed()).isTrue();
    }

    @Test
    void runsAnIdleInstanceOnTheThreadThatSubmits() {
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            RecordingObserver observer = submit(scheduler, "a");

            assertThat(observer.hasEnded()).isTrue();
            assertThat(observer.floats("OUT")).containsExactly(1, 2);
            assertThat(threads).containsExactly(Thread.currentThread().getName());
            observer.close();
            assertThat(scheduler.inFlight()).isZero();
        }
    }

    @Test
    void keepsToItsOwnThreadUnlessTheBackendPromisesShortExecutions() {
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, false)) {
            submit(scheduler, "a").await().close();
        }
        assertThat(threads).containsExactly(OWN_THREAD);
    }

    @Test
    void leavesRequestsThatNeedLargeOutputsToItsOwnThread() {
        execution = batch -> batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 100_000));
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            submit(scheduler, "a").await().close();
            submit(scheduler, "b").await().close();
        }
        assertThat(threads).containsExactly(Thread.currentThread().getName(), OWN_THREAD);
    }

    @Test
    void showsNothingOfOthersInWhatABackendLeavesUnfilled() {
        execution = batch -> batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 7));
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            RecordingObserver observer = submit(scheduler, "a");

            // Fresh memory of the fake holds garbage.
            assertThat(observer.floats("OUT")).containsExactly(0, 0, 0, 0, 0, 0, 0);
            observer.close();
        }
    }

    @Test
    void keepsToItsOwnThreadIfThatHasAPlace() {
        placement = () -> threads.add("placed " + Thread.currentThread().getName());
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            submit(scheduler, "a").await().close();
        }
        assertThat(threads).containsExactly("placed " + OWN_THREAD, OWN_THREAD);
    }

    @Test
    void keepsToItsOwnThreadIfTheModelIsDecoupled() {
        ModelSettings decoupled = ModelSettings.builder("m", 1)
                .decoupled(true)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1, 2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1, 2)))
                .build();
        execution = batch -> batch.requests().getFirst().sender().complete();
        try (ModelScheduler scheduler = start(decoupled, BatchingPolicy.NONE, true)) {
            submit(scheduler, "a").await();
        }
        assertThat(threads).containsExactly(OWN_THREAD);
    }

    @Test
    void neverRunsDirectlyWhileLimited() {
        try (ModelScheduler scheduler = TriedScheduler.start(
                new ModelPlan(model, BatchingPolicy.NONE).with(new ExecutionTraits("fake", false, true)),
                List.of(new Instance("i0", Device.CPU, instance)),
                environment().with(new RateLimiter(List.of())))) {
            submit(scheduler, "a").await().close();
            submit(scheduler, "b").await().close();
        }
        assertThat(threads).containsExactly(OWN_THREAD, OWN_THREAD);
    }

    @Test
    void runsBatchesThatNeedNotWaitAndLeavesOthersToItsOwnThread() {
        try (ModelScheduler scheduler = start(new BatchingPolicy(true, List.of(2), 1), true)) {
            RecordingObserver waiting = submit(scheduler, "a");
            assertThat(waiting.hasEnded()).isFalse();
            RecordingObserver completing = submit(scheduler, "b");
            waiting.await().close();
            completing.await().close();
        }
        assertThat(threads).containsExactly(OWN_THREAD);
        assertThat(instance.batches()).containsExactly(List.of("a", "b"));
    }

    @Test
    void runsWhatADynamicBatcherHeldWithTheRequestThatEndsTheHold() {
        try (ModelScheduler scheduler = startHeld(new BatchingPolicy(true, List.of(), 0))) {
            RecordingObserver held = submit(scheduler, "a");
            assertThat(held.hasEnded()).isFalse();
            submit(scheduler, "b").response().close();
            held.response().close();
            submit(scheduler, "c").response().close();
        }
        assertThat(threads).hasSize(2).doesNotContain(OWN_THREAD);
        assertThat(instance.batches()).containsExactly(List.of("a", "b"), List.of("c"));
    }

    @Test
    void holdsNoModelWithoutDynamicBatching() {
        try (ModelScheduler scheduler = startHeld(BatchingPolicy.NONE)) {
            submit(scheduler, "a").response().close();
        }
        assertThat(instance.batches()).containsExactly(List.of("a"));
    }

    @Test
    void executesWhatIsHeldAtItsEnd() {
        RecordingObserver held;
        try (ModelScheduler scheduler = startHeld(new BatchingPolicy(true, List.of(), 0))) {
            held = submit(scheduler, "a");
            assertThat(held.isSilent()).isTrue();
            Thread.startVirtualThread(() -> held.await().close());
        }
        assertThat(instance.batches()).containsExactly(List.of("a"));
    }

    private ModelScheduler startHeld(BatchingPolicy policy) {
        ModelScheduler scheduler = TriedScheduler.start(
                plan(model, policy, true),
                List.of(new Instance("i0", Device.CPU, instance)),
                environment().withSchedulerDelay(new SchedulerDelay(2, 0)));
        Threads.awaitIdle(Threads.named(OWN_THREAD));
        return scheduler;
    }

    @Test
    void queuesWhatComesFromWithinAndExecutesItAfterwards() {
        List<String> order = new ArrayList<>();
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            RecordingObserver inner = new RecordingObserver();
            observers.add(inner);
            execution = batch -> {
                String id = batch.requests().getFirst().id();
                order.add("begin " + id);
                if (id.equals("outer")) {
                    scheduler.submit(request("inner"), inner);
                }
                FakeInstance.copy(batch);
                order.add("end " + id);
            };

            submit(scheduler, "outer").close();

            assertThat(inner.hasEnded()).isTrue();
            inner.close();
        }
        assertThat(order).containsExactly("begin outer", "end outer", "begin inner", "end inner");
        assertThat(threads).containsOnly(Thread.currentThread().getName());
    }

    @Test
    void executesALittleOfWhatComesMeanwhileAndWakesItsOwnThreadForTheRest() {
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            List<RecordingObserver> later = new ArrayList<>();
            execution = batch -> {
                if (batch.requests().getFirst().id().equals("first")) {
                    for (int i = 0; i < 10; i++) {
                        RecordingObserver observer = new RecordingObserver();
                        later.add(observer);
                        scheduler.submit(request("later" + i), observer);
                    }
                }
                FakeInstance.copy(batch);
            };

            submit(scheduler, "first").close();

            later.forEach(observer -> observer.await().close());
        }
        String mine = Thread.currentThread().getName();
        assertThat(threads).hasSize(11);
        assertThat(threads.subList(0, 4)).containsOnly(mine);
        assertThat(threads.subList(4, 11)).containsOnly(OWN_THREAD);
        assertThat(instance.batches().getLast()).containsExactly("later9");
    }

    @Test
    void queuesForAnInstanceThatAnotherThreadRuns() throws Exception {
        CountDownLatch inside = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            execution = batch -> {
                inside.countDown();
                Latches.await(go);
                FakeInstance.copy(batch);
            };
            Thread other = Thread.ofPlatform().name("other").start(() -> submit(scheduler, "a"));
            assertThat(inside.await(30, TimeUnit.SECONDS)).isTrue();

            RecordingObserver second = submit(scheduler, "b");

            assertThat(second.hasEnded()).isFalse();
            go.countDown();
            second.await();
            other.join();
            observers.forEach(RecordingObserver::close);
        }
        assertThat(threads).containsExactly("other", "other");
        assertThat(instance.batches()).containsExactly(List.of("a"), List.of("b"));
    }

    @Test
    void movesToItsOwnThreadAfterAFewExecutionsThatAreNotShort() {
        execution = batch -> {
            clock.advanceNanos(TimeUnit.MILLISECONDS.toNanos(50));
            FakeInstance.copy(batch);
        };
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            for (int i = 0; i < 10; i++) {
                submit(scheduler, "r" + i).await().close();
            }
        }
        String mine = Thread.currentThread().getName();
        assertThat(threads.subList(0, 3)).containsOnly(mine);
        assertThat(threads.subList(3, 10)).containsOnly(OWN_THREAD);
    }

    @Test
    void forgivesALongExecutionForManyShortOnes() {
        List<String> ids = new ArrayList<>();
        execution = batch -> {
            String id = batch.requests().getFirst().id();
            ids.add(id);
            clock.advanceNanos(Integer.parseInt(id) % 50 == 0 ? 2_000_000 : 1_000_000);
            FakeInstance.copy(batch);
        };
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            for (int i = 0; i < 200; i++) {
                submit(scheduler, String.valueOf(i)).await().close();
            }
        }
        assertThat(ids).hasSize(200);
        assertThat(threads).containsOnly(Thread.currentThread().getName());
    }

    @Test
    void neverForgivesLongExecutionsThatComeAgainAndAgain() {
        execution = batch -> {
            String id = batch.requests().getFirst().id();
            clock.advanceNanos(Integer.parseInt(id) % 20 == 0 ? TimeUnit.SECONDS.toNanos(2) : 1_000);
            FakeInstance.copy(batch);
        };
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            for (int i = 0; i < 60; i++) {
                submit(scheduler, String.valueOf(i)).await().close();
            }
        }
        assertThat(threads.getFirst()).isEqualTo(Thread.currentThread().getName());
        assertThat(threads.subList(1, 60)).containsOnly(OWN_THREAD);
    }

    @Test
    void runsOnItsOwnThreadUntilAFewExecutionsWereShort() {
        try (ModelScheduler scheduler = startUntried()) {
            for (int i = 0; i < DirectExecutionPolicy.TRIAL + 1; i++) {
                submit(scheduler, "r" + i).await().close();
                Threads.awaitIdle(Threads.named(OWN_THREAD));
            }
        }
        assertThat(threads.subList(0, DirectExecutionPolicy.TRIAL)).containsOnly(OWN_THREAD);
        assertThat(threads.getLast()).isEqualTo(Thread.currentThread().getName());
    }

    /** An execution that always blocks never blocks a thread that submits. */
    @Test
    void neverRunsDirectlyWhatBlocksFromTheBeginning() {
        execution = batch -> {
            clock.advanceNanos(TimeUnit.SECONDS.toNanos(2));
            FakeInstance.copy(batch);
        };
        try (ModelScheduler scheduler = startUntried()) {
            for (int i = 0; i < 2 * DirectExecutionPolicy.TRIAL; i++) {
                submit(scheduler, "r" + i).await().close();
            }
        }
        assertThat(threads).containsOnly(OWN_THREAD);
    }

    private ModelScheduler startUntried() {
        return ModelScheduler.start(
                plan(model, BatchingPolicy.NONE, true),
                List.of(new Instance("i0", Device.CPU, instance)),
                environment());
    }

    @Test
    void leavesRequestsWhoseObserversWorkLongToTheInstanceThread() {
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            RecordingObserver observer = new RecordingObserver().workingLong();
            observers.add(observer);
            scheduler.submit(request("a"), observer);
            observer.await().close();
        }
        assertThat(threads).containsExactly(OWN_THREAD);
    }

    @Test
    void leavesToItsOwnThreadWhatWaitsAndTakesLong() {
        RecordingObserver slow = new RecordingObserver().workingLong();
        observers.add(slow);
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            execution = batch -> {
                if (batch.requests().getFirst().id().equals("first")) {
                    scheduler.submit(request("slow"), slow);
                }
                FakeInstance.copy(batch);
            };
            submit(scheduler, "first").close();
            slow.await().close();
        }
        assertThat(threads).containsExactly(Thread.currentThread().getName(), OWN_THREAD);
    }

    @Test
    void reportsABackendFailureAndKeepsTheInterruptOfTheSubmitter() {
        execution = batch -> {
            throw new IllegalStateException("odd");
        };
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            Thread.currentThread().interrupt();
            RecordingObserver observer = submit(scheduler, "a");
            assertThat(Thread.interrupted()).isTrue();
            observer.assertError(
                    ErrorCode.INTERNAL, "backend of model 'm' failed unexpectedly: IllegalStateException: odd");
            execution = FakeInstance::copy;
            submit(scheduler, "b").close();
        }
        assertThat(threads).containsOnly(Thread.currentThread().getName());
    }

    @Test
    void goesOnAfterAnErrorOfTheVirtualMachine() {
        execution = batch -> {
            throw new StackOverflowError("deep");
        };
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, true)) {
            RecordingObserver observer = submit(scheduler, "a");

            observer.assertError(
                    ErrorCode.INTERNAL, "backend of model 'm' failed unexpectedly: StackOverflowError: deep");
            execution = FakeInstance::copy;
            submit(scheduler, "b").close();
            assertThat(scheduler.isReady()).isTrue();
        }
        assertThat(threads).containsOnly(Thread.currentThread().getName());
    }

    @Test
    void distinguishesFailureFromRefusal() {
        List<String> received = new ArrayList<>();
        ResponseObserver observer = new ResponseObserver() {
            @Override
            public void onResponse(InferResponse response) {
                received.add("response");
                response.close();
            }

            @Override
            public void onCompleted() {
                received.add("end");
            }

            @Override
            public void onError(InferenceException error) {
                received.add("error " + error.code());
            }

            @Override
            public void onRefused(InferenceException error) {
                received.add("refused " + error.code());
            }
        };
        ModelScheduler scheduler = start(BatchingPolicy.NONE, true);
        scheduler.submit(request("a"), observer);
        execution = batch -> {
            throw new BackendException(ErrorCode.NOT_FOUND, "not here");
        };
        scheduler.submit(request("b"), observer);
        scheduler.close();
        scheduler.submit(request("c"), observer);

        assertThat(received).containsExactly("response", "error NOT_FOUND", "refused UNAVAILABLE");
    }

    /** Starts a scheduler with one instance, which is idle. */
    private ModelScheduler start(BatchingPolicy policy, boolean shortExecutions) {
        return start(model, policy, shortExecutions);
    }

    private ModelScheduler start(ModelSettings settings, BatchingPolicy policy, boolean shortExecutions) {
        ModelScheduler scheduler = TriedScheduler.start(
                plan(settings, policy, shortExecutions),
                List.of(new Instance("i0", Device.CPU, instance, RateProfile.NONE, placement)),
                environment());
        Threads.awaitIdle(Threads.named(OWN_THREAD));
        return scheduler;
    }

    private static ModelPlan plan(ModelSettings settings, BatchingPolicy policy, boolean shortExecutions) {
        return new ModelPlan(settings, policy)
                .with(new ExecutionTraits("liar", false, shortExecutions))
                .with(EarlyThreads.WARMUP);
    }

    private SchedulerEnvironment environment() {
        return new SchedulerEnvironment(memory, clock, new TimeoutQueue(() -> {}));
    }

    private RecordingObserver submit(ModelScheduler scheduler, String id) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(request(id), observer);
        return observer;
    }

    private CheckedRequest request(String id) {
        return Requests.to(model, memory).id(id).floats("IN", Shape.of(1, 2), 1).of(1);
    }
}
