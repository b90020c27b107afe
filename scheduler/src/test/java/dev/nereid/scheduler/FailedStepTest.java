package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** No request and no instance is lost when a step of queue, execution or release fails. */
@Timeout(60)
final class FailedStepTest {
    private static final int MAX_BATCH = 2;
    private static final long HOUR = Duration.ofHours(1).toNanos();

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FailingTimer timer = new FailingTimer();

    /** Which reading of the clock fails, counted from now; below 1 for none. */
    private final AtomicInteger failing = new AtomicInteger();

    private final FakeInstance instance = new FakeInstance(FakeInstance::copy);
    private final List<RecordingObserver> observers = new CopyOnWriteArrayList<>();

    /** The batch of the first request is taken when the second one arrives, whose timeout cannot be scheduled. */
    @Test
    void executesTheBatchIfTheTimeoutOfAnotherRequestCannotBeScheduled() {
        try (ModelScheduler scheduler = start("m", 1, PriorityPolicy.NONE, 2)) {
            RecordingObserver first = submit(scheduler, request("m", "first"));
            timer.failNext();
            RecordingObserver second = submit(scheduler, withDeadline("second"));

            assertThat(timer.hasFailed()).isTrue();
            second.assertError(ErrorCode.INTERNAL, "internal error: java.lang.IllegalStateException: for a test");
            first.await().response();
            checkServes(scheduler);
        }
        assertThat(instance.batches().getFirst()).containsExactly("first");
    }

    /** Two of three requests are taken together, and the timeout of the third one cannot be scheduled. */
    @Test
    void executesTheBatchOfRequestsThatAreQueuedTogether() {
        try (ModelScheduler scheduler = start("m", MAX_BATCH, PriorityPolicy.NONE, 0)) {
            timer.failNext();
            submitTogether(List.of(
                    () -> submit(scheduler, request("m", "first")),
                    () -> submit(scheduler, request("m", "second")),
                    () -> submit(scheduler, withDeadline("third"))));

            assertThat(timer.hasFailed()).isTrue();
            assertThat(observers).hasSize(3);
            observers.forEach(RecordingObserver::await);
            observers.get(0).response();
            observers.get(1).response();
            assertThat(observers.get(2).error().code()).isEqualTo(ErrorCode.INTERNAL);
            checkServes(scheduler);
        }
    }

    /** The clock is read between the steps of queue, execution and release. */
    @ParameterizedTest
    @CsvSource({
        "1, 0", "2, 0", "3, 0", "4, 0", "5, 0", "6, 0", "7, 0", "8, 0", "1, 3", "2, 3", "3, 3", "4, 3", "5, 3", "6, 3",
        "7, 3", "8, 3", "9, 3"
    })
    void completesAllRequestsWhereverAStepFails(int reading, int limit) {
        PriorityPolicy limited =
                new PriorityPolicy(0, 0, new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 0, false, limit), Map.of());
        try (ModelScheduler scheduler = start("m", MAX_BATCH, limited, 0)) {
            List<Runnable> submissions = new ArrayList<>();
            submissions.add(() -> failing.set(reading));
            for (int i = 0; i < 5; i++) {
                CheckedRequest request = request("m", "r" + i);
                submissions.add(() -> submit(scheduler, request));
            }
            submitTogether(submissions);

            assertThat(observers).hasSize(5);
            observers.forEach(RecordingObserver::await);
            failing.set(0);
            checkServes(scheduler);
        }
        observers.forEach(RecordingObserver::check);
    }

    /** Submits requests by the observer of one of another model, on its idle thread; returns when that is done. */
    private void submitTogether(List<Runnable> submissions) {
        ModelScheduler outer = start("outer", 1, PriorityPolicy.NONE, 0);
        outer.submit(request("outer", "outer"), new ResponseObserver() {
            @Override
            public void onResponse(InferResponse response) {
                response.close();
                submissions.forEach(Runnable::run);
            }

            @Override
            public void onCompleted() {}

            @Override
            public void onError(InferenceException error) {}
        });
        outer.close();
    }

    /** Checks that the instance is not lost. */
    private void checkServes(ModelScheduler scheduler) {
        submit(scheduler, request("m", "next")).await().response();
        observers.forEach(RecordingObserver::close);
        assertThat(instance.violations()).isEmpty();
    }

    private RecordingObserver submit(ModelScheduler scheduler, CheckedRequest request) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(request, observer);
        return observer;
    }

    /** Starts a model of short executions, whose instance is idle. */
    private ModelScheduler start(String name, int maxBatch, PriorityPolicy priorities, int delay) {
        FakeInstance executing = name.equals("m") ? instance : new FakeInstance(FakeInstance::copy);
        ModelScheduler scheduler = TriedScheduler.start(
                new ModelPlan(settings(name, maxBatch), new BatchingPolicy(true, List.of(), 0, false, priorities))
                        .with(new ExecutionTraits(name, false, true))
                        .with(EarlyThreads.WARMUP),
                List.of(new Instance("i0", Device.CPU, executing)),
                new SchedulerEnvironment(memory, name.equals("outer") ? System::nanoTime : this::now, timer)
                        .withSchedulerDelay(new SchedulerDelay(delay, 0)));
        Threads.awaitIdle(Threads.named("instance/" + name + "/1/i0"));
        return scheduler;
    }

    private long now() {
        if (failing.getAndDecrement() == 1) {
            throw new StackOverflowError("for a test");
        }
        return System.nanoTime();
    }

    private static ModelSettings settings(String name, int maxBatch) {
        return ModelSettings.builder(name, 1)
                .maxBatchSize(maxBatch)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
    }

    private CheckedRequest request(String model, String id) {
        return Requests.to(settings(model, MAX_BATCH), memory)
                .id(id)
                .floats("IN", Shape.of(1, 2), 1)
                .of(1);
    }

    private CheckedRequest withDeadline(String id) {
        return Requests.to(settings("m", MAX_BATCH), memory)
                .id(id)
                .floats("IN", Shape.of(1, 2), 1)
                .deadline(System.nanoTime() + HOUR)
                .of(1);
    }
}
