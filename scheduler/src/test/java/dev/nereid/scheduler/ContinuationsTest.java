package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ResponseDelivery;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests that observers submit to further models. */
@Timeout(60)
final class ContinuationsTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final CountDownLatch busy = new CountDownLatch(1);
    private final CountDownLatch go = new CountDownLatch(1);

    /** Executes its first batch when {@link #go} is counted down. */
    private final FakeInstance first = new FakeInstance(batch -> {
        busy.countDown();
        Latches.await(go);
        FakeInstance.copy(batch);
    });

    private final List<String> threads = new CopyOnWriteArrayList<>();
    private final List<Boolean> nested = new CopyOnWriteArrayList<>();

    private final FakeInstance second = new FakeInstance(batch -> {
        threads.add(Thread.currentThread().getName());
        nested.add(isDelivering());
        FakeInstance.copy(batch);
    });

    @Test
    void queuesTheRequestsThatFollowFromABatchTogether() {
        try (ModelScheduler a = start("a", first, false);
                ModelScheduler b = start("b", second, false)) {
            List<RecordingObserver> observers = submitAndHold(a, b, 9);

            go.countDown();
            observers.forEach(RecordingObserver::await);
            observers.forEach(RecordingObserver::close);
        }
        assertThat(first.batches()).extracting(List::size).containsExactly(1, 8);
        // Full first if the second model takes a batch only when the requests that follow from both are queued.
        assertThat(second.batches()).extracting(List::size).isIn(List.of(1, 8), List.of(8, 1));
        assertThat(threads).containsOnly("instance/b/1/i0");
        assertThat(second.violations()).isEmpty();
    }

    /**
     * Many clients send each response of one model to the other, and that of the other to the first again. Since batches
     * stay together, all but the first have the size of those that were formed at the start.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void keepsBatchesTogetherOverManySteps(boolean shortSteps) {
        int clients = 64;
        int rounds = 50;
        CountDownLatch ended = new CountDownLatch(clients);
        FakeInstance step = new FakeInstance(FakeInstance::copy);
        try (ModelScheduler a = start("a", first, false);
                ModelScheduler b = start("b", step, shortSteps);
                RecordingObserver held = new RecordingObserver()) {
            a.submit(request("a"), held);
            Latches.await(busy);
            for (int i = 0; i < clients; i++) {
                circulate(a, b, rounds, ended);
            }
            go.countDown();
            Latches.await(ended);
            held.await();
        }
        List<List<String>> afterTheFirst =
                first.batches().subList(1, first.batches().size());

        assertThat(mean(step.batches())).isGreaterThanOrEqualTo(0.5 * mean(afterTheFirst));
        assertThat(afterTheFirst)
                .hasSize(clients * rounds / 8)
                .extracting(List::size)
                .containsOnly(8);
        assertThat(step.batches())
                .hasSize(clients * rounds / 8)
                .extracting(List::size)
                .containsOnly(8);
    }

    private static double mean(List<List<String>> batches) {
        return batches.stream().mapToInt(List::size).average().orElseThrow();
    }

    /** Sends a request to one model, its response to the other, and so on. */
    private void circulate(ModelScheduler a, ModelScheduler b, int rounds, CountDownLatch ended) {
        if (rounds == 0) {
            ended.countDown();
            return;
        }
        a.submit(
                request("a"),
                new FollowingObserver(toB ->
                        b.submit(request("b"), new FollowingObserver(toA -> circulate(a, b, rounds - 1, ended)))));
    }

    @Test
    void executesShortStepsOnTheSameThreadAfterItsStackIsUnwound() {
        try (ModelScheduler a = start("a", first, false);
                ModelScheduler b = start("b", second, true)) {
            awaitIdle(b);
            List<RecordingObserver> observers = submitAndHold(a, b, 1);

            go.countDown();
            observers.forEach(RecordingObserver::await);

            assertThat(threads).last().isEqualTo("instance/a/1/i0");
            assertThat(nested).containsOnly(false);
            observers.forEach(RecordingObserver::close);
        }
        assertThat(second.violations()).isEmpty();
    }

    @Test
    void leavesShortStepsToTheirOwnThreadWhileMoreWorkWaits() {
        CountDownLatch stepDone = new CountDownLatch(1);
        FakeInstance busyOne = new FakeInstance(batch -> {
            if (busy.getCount() == 0) {
                Latches.await(stepDone); // before the second batch of its own
            }
            busy.countDown();
            Latches.await(go);
            FakeInstance.copy(batch);
        });
        FakeInstance step = new FakeInstance(batch -> {
            threads.add(Thread.currentThread().getName());
            FakeInstance.copy(batch);
        });
        try (ModelScheduler a = start("a", busyOne, false);
                ModelScheduler b = start("b", step, true)) {
            awaitIdle(b);
            threads.clear();
            List<RecordingObserver> observers = submitAndHold(a, b, 2);

            go.countDown();
            observers.getFirst().await();
            assertThat(threads).containsExactly("instance/b/1/i0");

            stepDone.countDown();
            observers.forEach(observer -> observer.await().close());
        }
    }

    /** Submits requests until this thread executes one: the instance is idle then. */
    private void awaitIdle(ModelScheduler scheduler) {
        do {
            try (RecordingObserver observer = new RecordingObserver()) {
                scheduler.submit(request("b"), observer);
                observer.await();
            }
        } while (!threads.getLast().equals(Thread.currentThread().getName()));
    }

    @Tag("slow")
    @Test
    void executesALongChainWithoutAGrowingStack() {
        FakeInstance quick = new FakeInstance(batch -> {
            nested.add(isDelivering());
            FakeInstance.copy(batch);
        });
        AtomicInteger left = new AtomicInteger(20_000);
        CountDownLatch done = new CountDownLatch(1);
        try (ModelScheduler a = start("a", quick, true)) {
            ResponseObserver again = new FollowingObserver(response -> {
                if (left.decrementAndGet() > 0) {
                    a.submit(request("a"), this.chain);
                } else {
                    done.countDown();
                }
            });
            chain = again;
            a.submit(request("a"), again);
            Latches.await(done);
        }
        assertThat(nested).hasSize(20_000).containsOnly(false);
        assertThat(quick.violations()).isEmpty();
    }

    private ResponseObserver chain = new RecordingObserver();

    /** A thread takes over as many executions as it has room for. */
    @Test
    void executesAllStepsOfManyModels() {
        List<ModelScheduler> models = new ArrayList<>();
        List<RecordingObserver> observers = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            models.add(start("m" + i, new FakeInstance(FakeInstance::copy), true));
            observers.add(new RecordingObserver());
        }
        go.countDown();
        try (ModelScheduler a = start("a", first, false)) {
            a.submit(request("a"), new FollowingObserver(response -> {
                for (int i = 0; i < models.size(); i++) {
                    models.get(i).submit(request("m" + i), observers.get(i));
                }
            }));
        }

        observers.forEach(observer -> observer.await().close());
        models.forEach(ModelScheduler::close);
    }

    @Test
    void queuesARequestOfABackendAtOnce() {
        RecordingObserver inner = new RecordingObserver();
        try (ModelScheduler b = start("b", second, false)) {
            FakeInstance calling = new FakeInstance(batch -> {
                b.submit(request("b"), inner);
                inner.await(); // as a backend that needs the result
                FakeInstance.copy(batch);
            });
            try (ModelScheduler a = start("a", calling, false);
                    RecordingObserver outer = new RecordingObserver()) {
                a.submit(request("a"), outer);
                assertThat(outer.await().floats("OUT")).containsExactly(1, 2);
            }
            inner.close();
        }
    }

    @Test
    void reportsRefusalsAndKeepsTheOthers() {
        ModelScheduler closed = start("c", new FakeInstance(FakeInstance::copy), false);
        closed.close();
        try (ModelScheduler a = start("a", first, false);
                ModelScheduler b = start("b", second, false);
                RecordingObserver toClosed = new RecordingObserver();
                RecordingObserver toOpen = new RecordingObserver()) {
            go.countDown();
            a.submit(request("a"), new FollowingObserver(response -> {
                closed.submit(request("c"), toClosed);
                b.submit(request("b"), toOpen);
                throw new IllegalStateException("observer that fails afterwards");
            }));

            assertThat(toClosed.await().error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(toOpen.await().floats("OUT")).containsExactly(1, 2);
        }
    }

    @Test
    void cancelsARequestBeforeItIsQueued() {
        try (ModelScheduler a = start("a", first, false);
                ModelScheduler b = start("b", second, false);
                RecordingObserver inner = new RecordingObserver()) {
            go.countDown();
            a.submit(request("a"), new FollowingObserver(response -> {
                Cancellation submitted = b.submit(request("b"), inner);
                submitted.cancel();
            }));

            assertThat(inner.await().error().code()).isEqualTo(ErrorCode.CANCELLED);
        }
        assertThat(second.batches()).isEmpty();
    }

    @Test
    void looksUpNoRequestThatWasCancelledBeforeItIsQueued() {
        FakeCache cache = new FakeCache();
        CacheAccess access = new CacheAccess(cache, Runnable::run);
        ModelPlan plan = new ModelPlan(settings("b"), new BatchingPolicy(true, List.of(), 0));
        try (ModelScheduler a = start("a", first, false);
                ModelScheduler b = TriedScheduler.start(
                        plan,
                        List.of(new Instance("i0", Device.CPU, second)),
                        new SchedulerEnvironment(memory, System::nanoTime, timer).with(Optional.of(access)));
                RecordingObserver cancelled = new RecordingObserver();
                RecordingObserver next = new RecordingObserver()) {
            go.countDown();
            a.submit(request("a"), new FollowingObserver(response -> {
                b.submit(request("b"), cancelled).cancel();
                b.submit(request("b"), next);
            }));

            assertThat(cancelled.await().error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(next.await().floats("OUT")).containsExactly(1, 2);
            assertThat(b.inFlight()).isEqualTo(1); // each is counted out once
        }
        assertThat(second.batches()).extracting(List::size).containsExactly(1);
    }

    @Test
    void readsNoInputOfARequestThatWasCancelledBeforeItIsQueued() {
        ModelSettings model = ModelSettings.builder("b", 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("SIZE", DataType.INT32, Shape.of(1)).with(TensorSpec.Trait.SHAPE_TENSOR))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
        FakeInstance answering = new FakeInstance(batch ->
                batch.requests().forEach(one -> one.fail(new BackendException(ErrorCode.UNSUPPORTED, "executed"))));
        try (ModelScheduler a = start("a", first, false);
                ModelScheduler b = TriedScheduler.start(
                        new ModelPlan(model, new BatchingPolicy(true, List.of(), 0)),
                        List.of(new Instance("i0", Device.CPU, answering)),
                        new SchedulerEnvironment(memory, System::nanoTime, timer));
                RecordingObserver cancelled = new RecordingObserver();
                RecordingObserver next = new RecordingObserver()) {
            go.countDown();
            a.submit(request("a"), new FollowingObserver(response -> {
                b.submit(sized(model), cancelled).cancel();
                b.submit(sized(model), next);
            }));

            assertThat(cancelled.await().error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(next.await().error().code()).isEqualTo(ErrorCode.UNSUPPORTED);
        }
    }

    /** Creates a request with a shape tensor in memory of its own, which is unmapped when it is freed. */
    private CheckedRequest sized(ModelSettings model) {
        Arena arena = Arena.ofShared();
        MemorySegment size = arena.allocateFrom(ValueLayout.JAVA_INT, 2);
        return Requests.to(model, memory)
                .input("SIZE", Tensor.of(DataType.INT32, Shape.of(1), size))
                .onRelease(arena::close)
                .of(1);
    }

    @Test
    void doesNotExecuteForObserversThatWorkLong() {
        FakeInstance quick = new FakeInstance(batch -> {
            threads.add(Thread.currentThread().getName());
            FakeInstance.copy(batch);
        });
        CountDownLatch done = new CountDownLatch(1);
        try (ModelScheduler a = start("a", quick, true)) {
            a.submit(request("a"), new FollowingObserver(response -> done.countDown()) {
                @Override
                public boolean isLong() {
                    return true;
                }
            });
            Latches.await(done);
        }
        assertThat(threads).containsExactly("instance/a/1/i0");
    }

    /** Submits requests to a model whose observers submit to another one; returns when all are queued. */
    private List<RecordingObserver> submitAndHold(ModelScheduler a, ModelScheduler b, int number) {
        List<RecordingObserver> observers = new ArrayList<>();
        for (int i = 0; i < number; i++) {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            a.submit(request("a"), new FollowingObserver(response -> b.submit(request("b"), observer)));
            Latches.await(busy);
        }
        return observers;
    }

    private ModelScheduler start(String name, FakeInstance instance, boolean isShort) {
        return TriedScheduler.start(
                new ModelPlan(settings(name), new BatchingPolicy(true, List.of(), 0))
                        .with(new ExecutionTraits(name, false, isShort)),
                List.of(new Instance("i0", Device.CPU, instance)),
                new SchedulerEnvironment(memory, System::nanoTime, timer));
    }

    private static ModelSettings settings(String name) {
        return ModelSettings.builder(name, 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
    }

    private CheckedRequest request(String model) {
        return Requests.to(settings(model), memory)
                .floats("IN", Shape.of(1, 2), 1)
                .of(1);
    }

    private static boolean isDelivering() {
        return StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE)
                .walk(frames -> frames.anyMatch(frame -> frame.getDeclaringClass() == ResponseDelivery.class));
    }

    /** Runs an action for each response, and closes the response. */
    private static class FollowingObserver implements ResponseObserver {
        private final Consumer<InferResponse> action;

        FollowingObserver(Consumer<InferResponse> action) {
            this.action = action;
        }

        @Override
        public void onResponse(InferResponse response) {
            try (response) {
                action.accept(response);
            }
        }

        @Override
        public void onCompleted() {}

        @Override
        public void onError(InferenceException error) {
            throw new AssertionError(error);
        }
    }
}
