package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.EarlyThreads;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.FakeStrategy;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.QueuedRequests;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.TriedScheduler;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.FormingBatch;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.RequestView;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Calls of a batching strategy, and the effect of its decisions. */
final class CustomBatchingTest {
    private static final long DELAY = 1_000;

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .build();
    private final FakeInstance instance = new FakeInstance(batch -> {
        note("execute");
        FakeInstance.copy(batch);
    });
    private final List<RecordingObserver> observers = new ArrayList<>();
    private FakeStrategy strategy = new FakeStrategy(request -> true);
    private SteppedScheduler scheduler;

    @AfterEach
    void everythingIsGivenBack() {
        observers.forEach(RecordingObserver::check);
        observers.forEach(
                observer -> assertThat(observer.hasEnded()).as("completed").isTrue());
        observers.forEach(RecordingObserver::close);
        assertThat(instance.violations()).isEmpty();
        assertThat(strategy.violations()).isEmpty();
        assertThat(strategy.isForming()).isFalse();
        memory.close();
    }

    @Test
    void callsTheStrategyInOrder() {
        begin(request -> true, 0);
        submit("a", 1);
        submit("b", 1);

        scheduler.drain();

        assertThat(strategy.calls()).containsExactly("begin", "include a", "include b", "close", "execute");
        assertThat(instance.batches()).containsExactly(List.of("a", "b"));
    }

    @Test
    void endsTheBatchBeforeItsExecution() {
        begin(request -> true, 0);
        submit("a", 1);

        scheduler.drain();

        assertThat(strategy.calls()).containsExactly("begin", "include a", "close", "execute");
    }

    @Test
    void beginsABatchForEachForming() {
        begin(request -> true, 0);
        submit("a", 8);
        submit("b", 3);

        scheduler.drain();

        assertThat(strategy.calls())
                .containsExactly("begin", "include a", "close", "execute", "begin", "include b", "close", "execute");
    }

    @Test
    void evaluatesEachCandidateInOrder() {
        PriorityPolicy priorities = new PriorityPolicy(2, 2, QueuePolicy.NONE, Map.of());
        begin(request -> true, new BatchPlanner(8, List.of(), 0), priorities);
        submit("low", 1);
        submit("high", 1, builder -> builder.priority(1));
        submit("last", 2);

        scheduler.drain();

        assertThat(strategy.calls())
                .containsExactly("begin", "include high", "include low", "include last", "close", "execute");
        assertThat(instance.batches()).containsExactly(List.of("high", "low", "last"));
    }

    @Test
    void evaluatesOnlyPossibleCandidates() {
        begin(request -> true, 0);
        submit("a", 5);
        submit("too large", 4);
        submit("b", 1);
        submit("other shape", 1, builder -> {}, 7);

        scheduler.drain();

        assertThat(strategy.calls())
                .containsExactly(
                        "begin",
                        "include a",
                        "close",
                        "execute",
                        "begin",
                        "include too large",
                        "include b",
                        "close",
                        "execute",
                        "begin",
                        "include other shape",
                        "close",
                        "execute");
    }

    @Test
    void goesAtOnceWhenOneIsNotIncluded() {
        begin(request -> !request.id().equals("b"), DELAY);
        submit("a", 1);
        assertThat(scheduler.step()).as("waits for more").isFalse();
        submit("b", 1);
        submit("c", 1);

        assertThat(scheduler.step()).isTrue();
        assertThat(instance.batches()).containsExactly(List.of("a"));
        assertThat(scheduler.step()).as("b and c wait for more").isFalse();
        scheduler.advance(DELAY);
        assertThat(scheduler.step()).isTrue();

        assertThat(instance.batches()).containsExactly(List.of("a"), List.of("b", "c"));
    }

    @Test
    void takesTheFirstWhateverIsSaidOfIt() {
        begin(request -> false, 0);
        submit("a", 1);
        submit("b", 1);

        scheduler.drain();

        assertThat(instance.batches()).containsExactly(List.of("a"), List.of("b"));
        assertThat(strategy.calls())
                .startsWith("begin", "include a", "include b", "close", "execute", "begin", "include b", "close");
    }

    @Test
    void beginsAnewWhenFormingRestarts() {
        PriorityPolicy priorities = new PriorityPolicy(2, 2, QueuePolicy.NONE, Map.of());
        Set<String> seen = new HashSet<>();
        begin(
                request -> {
                    if (seen.add(request.id()) && request.id().equals("low")) {
                        submit("high", 1, builder -> builder.priority(1));
                    }
                    return true;
                },
                new BatchPlanner(8, List.of(), 0),
                priorities);
        submit("low", 1);

        scheduler.drain();

        assertThat(strategy.calls())
                .containsExactly(
                        "begin", "include low", "close", "begin", "include high", "include low", "close", "execute");
        assertThat(instance.batches()).containsExactly(List.of("high", "low"));
    }

    @Test
    void beginsAnewForWhatComesDuringTheDelay() {
        begin(request -> true, DELAY);
        submit("a", 1);
        assertThat(scheduler.step()).isFalse();
        submit("b", 1);
        assertThat(scheduler.step()).isFalse();
        scheduler.advance(DELAY);
        assertThat(scheduler.step()).isTrue();

        assertThat(strategy.calls())
                .containsExactly(
                        "begin",
                        "include a",
                        "close",
                        "begin",
                        "include a",
                        "include b",
                        "close",
                        "begin",
                        "include a",
                        "include b",
                        "close",
                        "execute");
        assertThat(instance.batches()).containsExactly(List.of("a", "b"));
    }

    @Test
    void evaluatesARequestThatArrivesDuringForming() {
        Set<String> seen = new HashSet<>();
        begin(
                request -> {
                    if (seen.add(request.id()) && request.id().equals("a")) {
                        submit("b", 7);
                    }
                    return true;
                },
                DELAY);
        submit("a", 1);

        assertThat(scheduler.step()).as("both make the largest batch").isTrue();

        assertThat(instance.batches()).containsExactly(List.of("a", "b"));
    }

    @Test
    void leavesARequestThatComesWhileABatchIsFormedForTheNext() {
        begin(
                request -> {
                    if (request.id().equals("a")) {
                        submit("b", 1);
                    }
                    return true;
                },
                0);
        submit("a", 1);

        scheduler.drain();

        assertThat(instance.batches()).containsExactly(List.of("a"), List.of("b"));
    }

    @Test
    void anExceptionMeansNotIncluded() {
        List<Throwable> thrown = List.of(
                new BackendException(ErrorCode.INTERNAL, "no"),
                new IllegalStateException("a bug"),
                new NoClassDefFoundError("Missing"),
                new StackOverflowError());
        begin(
                request -> {
                    int index = Integer.parseInt(request.id());
                    if (index > 0) {
                        throw sneaky(thrown.get(index - 1));
                    }
                    return true;
                },
                0);
        for (int i = 0; i <= thrown.size(); i++) {
            submit(String.valueOf(i), 1);
        }

        scheduler.drain();

        assertThat(instance.batches())
                .containsExactly(List.of("0"), List.of("1"), List.of("2"), List.of("3"), List.of("4"));
    }

    /** Throws any exception, as code may that was not compiled from Java. */
    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
    private static <T extends Throwable> RuntimeException sneaky(Throwable thrown) throws T {
        throw (T) thrown;
    }

    @Test
    void executesOneByOneWhenTheStrategyCannotBegin() {
        for (BatchingStrategy broken : List.<BatchingStrategy>of(
                () -> {
                    throw new BackendException(ErrorCode.UNAVAILABLE, "not now");
                },
                CustomBatchingTest::nothing)) {
            scheduler = scheduler(broken, new BatchPlanner(8, List.of(), 0), PriorityPolicy.NONE);
            int before = instance.batches().size();
            submit("a", 1);
            submit("b", 1);

            scheduler.drain();

            assertThat(instance.batches().subList(before, before + 2)).containsExactly(List.of("a"), List.of("b"));
        }
    }

    @SuppressWarnings("NullAway") // as of a plugin that is not compiled with our checks
    private static FormingBatch nothing() {
        return null;
    }

    @Test
    void survivesABatchThatCannotBeClosed() {
        scheduler = scheduler(
                () -> new FormingBatch() {
                    @Override
                    public boolean include(RequestView request) {
                        return true;
                    }

                    @Override
                    public void close() {
                        throw new IllegalStateException("a bug");
                    }
                },
                new BatchPlanner(8, List.of(), 0),
                PriorityPolicy.NONE);
        submit("a", 1);
        submit("b", 1);

        scheduler.drain();

        assertThat(instance.batches()).containsExactly(List.of("a", "b"));
    }

    @Test
    void aCancelledCandidateIsSkipped() {
        List<Cancellation> cancellations = new ArrayList<>();
        List<Float> read = new ArrayList<>();
        begin(
                request -> {
                    if (request.id().equals("b")) {
                        cancellations.get(1).cancel();
                        cancellations.get(2).cancel();
                    }
                    var content = request.input("IN").orElseThrow().data();
                    read.add(content.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0));
                    return true;
                },
                0);
        for (String id : List.of("a", "b", "c", "d")) {
            cancellations.add(submit(id, 1));
        }

        scheduler.drain();

        assertThat(read).as("memory stays readable").containsExactly(1f, 1f, 1f, 1f);
        assertThat(instance.batches()).containsExactly(List.of("a", "d"));
        observers.get(1).assertError(ErrorCode.CANCELLED, "request was cancelled");
        observers.get(2).assertError(ErrorCode.CANCELLED, "request was cancelled");
    }

    @Test
    void restartsWhenTheFirstCandidateIsCancelled() {
        List<Cancellation> cancellations = new ArrayList<>();
        begin(
                request -> {
                    if (request.id().equals("b")) {
                        cancellations.getFirst().cancel();
                    }
                    return !request.id().equals("c");
                },
                0);
        for (String id : List.of("a", "b", "c", "d")) {
            cancellations.add(submit(id, 1));
        }

        scheduler.drain();

        assertThat(instance.batches()).containsExactly(List.of("b"), List.of("c", "d"));
        assertThat(strategy.calls())
                .startsWith("begin", "include a", "include b", "include c", "close", "begin", "include b", "include c");
    }

    @Test
    void endsAlsoWhenOthersComeAndGoAllTheTime() {
        List<Cancellation> cancellations = new ArrayList<>();
        begin(
                request -> {
                    assertThat(cancellations.size()).as("ends").isLessThan(100);
                    cancellations.getLast().cancel();
                    cancellations.add(submit(String.valueOf(cancellations.size()), 1));
                    return true;
                },
                DELAY);
        cancellations.add(submit("0", 1));

        assertThat(scheduler.step()).isTrue();

        assertThat(instance.batches()).hasSize(1);
    }

    @Test
    void executesNothingWhoseTimeIsOverByThen() {
        begin(
                request -> {
                    scheduler.clock.advanceNanos(10);
                    return true;
                },
                0);
        submit("a", 1, builder -> builder.deadline(scheduler.clock.getAsLong() + 15));
        submit("b", 1);

        scheduler.drain();

        assertThat(instance.batches()).containsExactly(List.of("b"));
        observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
    }

    @Test
    void holdsNoLockDuringEvaluation() {
        List<Integer> waiting = new ArrayList<>();
        begin(
                request -> {
                    waiting.add(elsewhere(() -> scheduler.queue.waiting()));
                    return true;
                },
                0);
        submit("a", 1);
        submit("b", 1);

        scheduler.drain();

        assertThat(waiting).containsExactly(2, 2);
    }

    private static <T> T elsewhere(Supplier<T> question) {
        try {
            return CompletableFuture.supplyAsync(question).get(30, TimeUnit.SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void formsOneBatchAtATime() {
        begin(
                request -> {
                    assertThat(scheduler.workers.get(1).step())
                            .as("the other instance has to wait")
                            .isFalse();
                    return true;
                },
                0);
        submit("a", 1);

        scheduler.drain();

        assertThat(strategy.calls()).containsExactly("begin", "include a", "close", "execute");
    }

    @Test
    void showsARequestOnlyWhileItsBatchIsFormed() {
        List<RequestView> kept = new ArrayList<>();
        begin(
                request -> {
                    assertThat(request.batchSize()).isEqualTo(2);
                    assertThat(request.priority()).isEqualTo(7);
                    assertThat(request.inputs()).containsExactly("IN");
                    assertThat(request.input("IN").orElseThrow().shape()).isEqualTo(Shape.of(2, 2));
                    assertThat(request.input("WHAT")).isEmpty();
                    assertThat(request.requestedOutputs()).containsExactly("OUT");
                    assertThat(request.parameters().asMap()).isEmpty();
                    kept.add(request);
                    return true;
                },
                0);
        submit("a", 2, builder -> builder.priority(7));

        scheduler.drain();

        assertThatIllegalStateException()
                .isThrownBy(() -> kept.getFirst().input("IN"))
                .withMessage("request 'a': its batch is formed (expected: not yet)");
    }

    @Test
    void closesTheStrategyBeforeTheModel() {
        strategy = new FakeStrategy(request -> true);
        ModelScheduler started = TriedScheduler.start(
                new ModelPlan(model, new BatchingPolicy(true, List.of(), 0)).withStrategy(Optional.of(strategy)),
                List.of(new Instance("i0", Device.CPU, instance)),
                environment());
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        started.submit(request("a", 1, 2).of(1), observer);
        observer.await().close();

        started.close();
        started.close();

        assertThat(strategy.closed()).isEqualTo(1);
        assertThat(strategy.calls()).endsWith("execute", "close strategy");
        assertThat(instance.isClosed()).isTrue();
    }

    @Test
    void closesTheStrategyOfASchedulerThatDoesNotStart() {
        strategy = new FakeStrategy(request -> true);
        ModelPlan plan =
                new ModelPlan(model, new BatchingPolicy(true, List.of(), 0)).withStrategy(Optional.of(strategy));

        assertThatIllegalArgumentException().isThrownBy(() -> TriedScheduler.start(plan, List.of(), environment()));

        assertThat(strategy.closed()).isEqualTo(1);
    }

    @Test
    void isNotUsedWithoutDynamicBatching() {
        strategy = new FakeStrategy(request -> false);
        ModelScheduler started = TriedScheduler.start(
                new ModelPlan(model, BatchingPolicy.NONE).withStrategy(Optional.of(strategy)),
                List.of(new Instance("i0", Device.CPU, instance)),
                environment());
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        started.submit(request("a", 1, 2).of(1), observer);
        observer.await().close();
        started.close();

        assertThat(strategy.calls()).containsExactly("execute", "close strategy");
    }

    @Test
    void neverRunsOnTheThreadThatSubmits() {
        strategy = new FakeStrategy(request -> true);
        List<Thread> threads = new CopyOnWriteArrayList<>();
        FakeInstance here = new FakeInstance(batch -> {
            threads.add(Thread.currentThread());
            FakeInstance.copy(batch);
        });
        ModelScheduler started = TriedScheduler.start(
                new ModelPlan(model, new BatchingPolicy(true, List.of(), 0))
                        .with(new ExecutionTraits("b", false, true))
                        .withStrategy(Optional.of(strategy)),
                List.of(new Instance("i0", Device.CPU, here)),
                environment());
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);

        started.submit(request("a", 1, 2).of(1), observer);
        observer.await().close();
        started.close();

        assertThat(threads).hasSize(1).doesNotContain(Thread.currentThread());
    }

    /** The instance that waits for more has called the strategy; neither the other one nor the first calls it again. */
    @Test
    void evaluatesNothingTwiceWhileIdle() {
        strategy = new FakeStrategy(request -> true);
        FakeInstance one = new FakeInstance(FakeInstance::copy);
        FakeInstance other = new FakeInstance(FakeInstance::copy);
        CountDownLatch responded = new CountDownLatch(1);
        try (ModelScheduler started = TriedScheduler.start(
                new ModelPlan(model, new BatchingPolicy(true, List.of(), TimeUnit.HOURS.toNanos(1)))
                        .withStrategy(Optional.of(strategy))
                        .with(EarlyThreads.WARMUP),
                List.of(new Instance("patient_0", Device.CPU, one), new Instance("patient_1", Device.CPU, other)),
                new SchedulerEnvironment(memory, System::nanoTime, new TimeoutQueue(() -> {})))) {
            started.submit(request("a", 1, 2).of(1), counting(new AtomicInteger(), responded));
            for (int settled = 0; settled < 1_000; settled = isSettled() ? settled + 1 : 0) {
                Thread.onSpinWait();
            }

            assertThat(strategy.calls()).filteredOn("begin"::equals).hasSizeBetween(1, 2);
        }
        await(responded);
    }

    /** Returns whether one instance waits for a time, and the other one until it is woken. */
    private static boolean isSettled() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().contains("/patient_"))
                .map(Thread::getState)
                .collect(Collectors.toSet())
                .equals(Set.of(Thread.State.WAITING, Thread.State.TIMED_WAITING));
    }

    @Test
    void servesManyThreadsOneBatchAtATime() throws InterruptedException {
        strategy = new FakeStrategy(request -> !request.id().endsWith("3"));
        List<FakeInstance> instances = List.of(
                new FakeInstance(FakeInstance::copy),
                new FakeInstance(FakeInstance::copy),
                new FakeInstance(FakeInstance::copy));
        List<Instance> slots = instances.stream()
                .map(one -> new Instance("i", Device.CPU, one))
                .toList();
        ModelScheduler started = TriedScheduler.start(
                new ModelPlan(model, new BatchingPolicy(true, List.of(), 50_000)).withStrategy(Optional.of(strategy)),
                slots,
                new SchedulerEnvironment(memory, System::nanoTime, new TimeoutQueue(() -> {})));
        AtomicInteger ended = new AtomicInteger();
        List<Thread> clients = new ArrayList<>();
        for (int client = 0; client < 3; client++) {
            clients.add(Thread.ofPlatform().start(() -> {
                for (int i = 0; i < 500; i++) {
                    CountDownLatch responded = new CountDownLatch(1);
                    Cancellation cancellation =
                            started.submit(request(String.valueOf(i), 1, 2).of(1), counting(ended, responded));
                    if (i % 7 == 0) {
                        cancellation.cancel();
                    }
                    if (i % 20 == 0) {
                        await(responded);
                    }
                }
            }));
        }
        for (Thread client : clients) {
            client.join();
        }

        started.close();

        assertThat(ended).hasValue(1_500);
        instances.forEach(one -> assertThat(one.violations()).isEmpty());
        assertThat(strategy.closed()).isEqualTo(1);
    }

    private static ResponseObserver counting(AtomicInteger ended, CountDownLatch responded) {
        return new ResponseObserver() {
            @Override
            public void onResponse(InferResponse response) {
                response.close();
                onCompleted();
            }

            @Override
            public void onCompleted() {
                ended.incrementAndGet();
                responded.countDown();
            }

            @Override
            public void onError(InferenceException error) {
                onCompleted();
            }
        };
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private void note(String what) {
        strategy.note(what);
    }

    private void begin(FakeStrategy.Rule rule, long delayNanos) {
        begin(rule, new BatchPlanner(8, List.of(), delayNanos), PriorityPolicy.NONE);
    }

    private void begin(FakeStrategy.Rule rule, BatchPlanner planner, PriorityPolicy priorities) {
        strategy = new FakeStrategy(rule);
        scheduler = scheduler(strategy, planner, priorities);
    }

    private SteppedScheduler scheduler(BatchingStrategy rule, BatchPlanner planner, PriorityPolicy priorities) {
        return new SteppedScheduler(
                model,
                planner,
                new BatchingPolicy(true, List.of(), 0, false, priorities),
                memory,
                ExecutionTraits.DEFAULT,
                rule,
                instance,
                new FakeInstance(FakeInstance::copy));
    }

    private SchedulerEnvironment environment() {
        return new SchedulerEnvironment(memory, () -> 0, new TimeoutQueue(() -> {}));
    }

    private Requests request(String id, int items, int width) {
        return Requests.to(model, memory).id(id).floats("IN", Shape.of(items, width), 1);
    }

    private Cancellation submit(String id, int items) {
        return submit(id, items, builder -> {});
    }

    private Cancellation submit(String id, int items, QueuedRequests.Options options) {
        return submit(id, items, options, 2);
    }

    private Cancellation submit(String id, int items, QueuedRequests.Options options, int width) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        Requests builder = request(id, items, width);
        options.on(builder);
        return scheduler.submit(builder.of(items), observer);
    }
}
