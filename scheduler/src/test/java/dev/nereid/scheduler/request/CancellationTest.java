package dev.nereid.scheduler.request;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.QueuedRequests;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Cancellation during an execution; {@code DynamicBatchingTest} covers cancellation in the queue. */
@Timeout(60)
final class CancellationTest {
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final List<InferenceRequest> requests = new ArrayList<>();
    private final List<DeferredExecution> deferred = new ArrayList<>();
    private final Execution execution = new Execution(model, batch -> {
        FakeInstance.copy(batch);
        requests.addAll(batch.requests());
        deferred.add(batch.defer());
    });
    private final List<String> ran = new ArrayList<>();

    @Test
    void skipsACancelledRequest() {
        try (QueuedRequests queued =
                new QueuedRequests(new BatchPlanner(8, List.of(), 0), PriorityPolicy.NONE, FakeInstance::copy)) {
            queued.submit("a");
            Cancellation b = queued.submit("b");
            queued.submit("c");

            b.cancel();
            queued.scheduler.drain();

            queued.observer("b").assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(queued.batches()).containsExactly(List.of("a", "c"));
        }
    }

    @Test
    void neverExecutesACancelledRequestWithoutBatching() {
        try (QueuedRequests queued = new QueuedRequests(PriorityPolicy.NONE)) {
            queued.submit("a");
            Cancellation b = queued.submit("b");
            queued.submit("c");

            b.cancel();

            queued.observer("b").assertError(ErrorCode.CANCELLED, "request was cancelled");
            queued.scheduler.drain();
            assertThat(queued.batches()).containsExactly(List.of("a"), List.of("c"));
        }
    }

    /** The handle of a submission is all that a caller in the same program has. */
    @Test
    void aHandleCancels() throws InterruptedException {
        CountDownLatch executing = new CountDownLatch(1);
        CountDownLatch cancelled = new CountDownLatch(1);
        try (LeakCheckingMemory memory = new LeakCheckingMemory();
                TimerThread timer = new TimerThread(System::nanoTime);
                RecordingObserver first = new RecordingObserver();
                RecordingObserver second = new RecordingObserver();
                ModelScheduler scheduler = ModelScheduler.start(
                        new ModelPlan(model, BatchingPolicy.NONE),
                        List.of(new Instance("i0", Device.CPU, new FakeInstance(batch -> {
                            batch.requests().getFirst().onCancel(cancelled::countDown);
                            executing.countDown();
                            await(cancelled);
                            FakeInstance.copy(batch);
                        }))),
                        new SchedulerEnvironment(memory, System::nanoTime, timer))) {
            Cancellation handle = scheduler.submit(
                    Requests.to(model, memory).floats("IN", Shape.of(1, 2), 1).of(1), first);
            await(executing);
            Cancellation waiting = scheduler.submit(
                    Requests.to(model, memory).floats("IN", Shape.of(1, 2), 1).of(1), second);

            waiting.cancel();
            second.assertError(ErrorCode.CANCELLED, "request was cancelled");
            handle.cancel();

            first.await().assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
    }

    @Test
    void aBackendSeesTheCancellation() {
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();
            requests.getFirst().onCancel(() -> ran.add("cancelled"));
            assertThat(requests.getFirst().isCancelled()).isFalse();

            execution.requests.getFirst().cancel();

            assertThat(requests.getFirst().isCancelled()).isTrue();
            assertThat(ran).containsExactly("cancelled");
            deferred.getFirst().complete();
        }
    }

    @Test
    void completesWhenTheExecutionEnds() {
        try (execution) {
            Execution.submit(execution, 1, 1);
            execution.run();

            execution.requests.get(0).cancel();

            assertThat(requests.get(0).isCancelled()).isTrue();
            assertThat(requests.get(1).isCancelled()).isFalse();
            assertThat(execution.observers.get(0).isSilent()).isTrue();
            deferred.getFirst().complete();
            deferred.getFirst().complete();
            execution.observers.get(0).assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(execution.observers.get(1).floats("OUT")).containsExactly(10, 11);
        }
    }

    @Test
    void completesAtOnceWhenTheBackendFailsTheRequest() {
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();

            requests.getFirst()
                    .onCancel(() -> requests.getFirst().fail(new BackendException(ErrorCode.INTERNAL, "terminated")));
            execution.requests.getFirst().cancel();

            execution.observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
            deferred.getFirst().fail(new BackendException(ErrorCode.INTERNAL, "late"));
        }
    }

    @Test
    void runsEachActionOnce() {
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();
            requests.getFirst().onCancel(() -> ran.add("first"));
            CancelHook closed = requests.getFirst().onCancel(() -> ran.add("closed"));
            closed.close();
            closed.close();
            requests.getFirst().onCancel(() -> {
                throw new IllegalStateException("logged");
            });

            execution.requests.getFirst().cancel();
            execution.requests.getFirst().cancel();
            requests.getFirst().onCancel(() -> ran.add("at once")).close();

            assertThat(ran).containsExactly("first", "at once");
            deferred.getFirst().complete();
        }
    }

    @Test
    void runsNoActionAfterCompletion() {
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();
            requests.getFirst().onCancel(() -> ran.add("waiting"));

            deferred.getFirst().complete();
            execution.requests.getFirst().cancel();
            requests.getFirst().onCancel(() -> ran.add("late"));

            assertThat(ran).isEmpty();
            assertThat(execution.observers.getFirst().response().outputs()).hasSize(1);
        }
    }

    @Test
    void deliversTheResponseAfterRunningActions() throws InterruptedException {
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();
            requests.getFirst().onCancel(() -> {
                running.countDown();
                await(go);
                ran.add(execution.observers.getFirst().isSilent() ? "before the completion" : "after the completion");
            });
            Thread canceller = Thread.startVirtualThread(execution.requests.getFirst()::cancel);
            await(running);

            deferred.getFirst().complete(); // does not wait

            assertThat(execution.observers.getFirst().isSilent()).isTrue();
            assertThat(execution.scheduler.inFlight()).isEqualTo(1);
            go.countDown();
            canceller.join();
            assertThat(ran).containsExactly("before the completion");
            execution.observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
    }

    @Test
    void waitsForARunningActionWhenItsHookIsClosed() throws InterruptedException {
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        List<CancelHook> self = new ArrayList<>();
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();
            CancelHook hook = requests.getFirst().onCancel(() -> {
                self.getFirst().close(); // its own, so it must not wait
                running.countDown();
                await(go);
                ran.add("action");
            });
            self.add(hook);
            Thread canceller = Thread.startVirtualThread(execution.requests.getFirst()::cancel);
            await(running);
            Thread closer = Thread.startVirtualThread(() -> {
                hook.close();
                ran.add("closed");
            });
            while (closer.getState() != Thread.State.WAITING) {
                Thread.onSpinWait();
            }
            assertThat(ran).isEmpty();
            go.countDown();
            canceller.join();
            closer.join();

            assertThat(ran).containsExactly("action", "closed");
            deferred.getFirst().complete();
        }
    }

    @Test
    void failsOpenRequestsWhenTheBackendThrowsAfterItDeferred() {
        List<DeferredExecution> handles = new ArrayList<>();
        try (Execution throwing = new Execution(model, batch -> {
            handles.add(batch.defer());
            throw new BackendException(ErrorCode.INTERNAL, "not started");
        })) {
            Execution.submit(throwing, 1);
            throwing.run();

            throwing.observers.getFirst().assertError(ErrorCode.INTERNAL, "not started");
            assertThat(throwing.scheduler.inFlight()).isEqualTo(1); // inputs stay until the handle is ended
            handles.getFirst().complete();
            assertThat(throwing.scheduler.inFlight()).isZero();
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
