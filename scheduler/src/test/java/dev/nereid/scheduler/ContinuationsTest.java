package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.InstanceSlot;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ResponseDelivery;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

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

            assertThat(first.batches()).extracting(List::size).containsExactly(1, 8);
            assertThat(second.batches()).extracting(List::size).containsExactly(1, 8);
            assertThat(threads).containsOnly("instance/b/1/i0");
            observers.forEach(RecordingObserver::close);
        }
        assertThat(second.violations()).isEmpty();
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
        return ModelScheduler.start(
                new ModelPlan(settings(name), new BatchingPolicy(true, List.of(), 0))
                        .with(new ExecutionTraits(name, false, isShort)),
                List.of(new InstanceSlot("i0", Device.CPU, instance)),
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
