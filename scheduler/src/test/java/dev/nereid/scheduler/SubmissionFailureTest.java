package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.request.CheckedRequest;
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
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests that a plugin submits to another model, and with a stack that ends inside of the submission. */
@Timeout(60)
final class SubmissionFailureTest {
    private static final int REQUESTS = 3;

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final FakeInstance called = new FakeInstance(FakeInstance::copy);
    private final List<RecordingObserver> observers = new ArrayList<>();

    /** Set if the stack ends at the next reading of the clock but one, or at the next one. */
    private final AtomicBoolean nextButOne = new AtomicBoolean();

    private final AtomicBoolean next = new AtomicBoolean();

    /** The first request is created, and the stack ends while the queue adds it. */
    @Test
    void losesNoRequestOfABackend() {
        try (ModelScheduler m = start("m", called, 1)) {
            FakeInstance calling = new FakeInstance(batch -> {
                nextButOne.set(true);
                for (int i = 0; i < REQUESTS; i++) {
                    submit(m);
                }
                FakeInstance.copy(batch);
            });
            try (ModelScheduler outer = start("outer", calling, 1);
                    RecordingObserver observer = new RecordingObserver()) {
                outer.submit(request("outer"), observer);
                assertThat(observer.await().floats("OUT")).containsExactly(1, 2);
            }

            observers.getFirst().await();
            assertOverflow(observers.getFirst());
            observers.subList(1, REQUESTS).forEach(observer -> observer.await().response());
            checkServes(m);
        }
        assertThat(called.violations()).isEmpty();
    }

    /** The requests are queued together after the observer has returned, and the stack ends meanwhile. */
    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void losesNoRequestOfAnObserver(int maxBatch) {
        try (ModelScheduler m = start("m", called, maxBatch)) {
            try (ModelScheduler outer = start("outer", new FakeInstance(FakeInstance::copy), 1)) {
                outer.submit(request("outer"), new ResponseObserver() {
                    @Override
                    public void onResponse(InferResponse response) {
                        response.close();
                        for (int i = 0; i < REQUESTS; i++) {
                            submit(m);
                        }
                        next.set(true);
                    }

                    @Override
                    public void onCompleted() {}

                    @Override
                    public void onError(InferenceException error) {}
                });
            }

            assertThat(observers).hasSize(REQUESTS);
            observers.forEach(RecordingObserver::await);
            observers.forEach(SubmissionFailureTest::assertOverflow);
            checkServes(m);
        }
        assertThat(called.violations()).isEmpty();
    }

    @Test
    void executesARequestWhoseClientFailsToReleaseItsInputs() {
        try (ModelScheduler m = start("m", called, 1)) {
            RecordingObserver observer = new RecordingObserver();
            CheckedRequest request = Requests.to(settings("m", 1), memory)
                    .floats("IN", Shape.of(1, 2), 1)
                    .onRelease(() -> {
                        throw new LinkageError("of a test");
                    })
                    .of(1);
            m.submit(request, observer);

            assertThat(observer.await().floats("OUT")).containsExactly(1, 2);
            observer.close();
        }
        assertThat(called.isClosed()).as("no request is in flight").isTrue();
    }

    private static void assertOverflow(RecordingObserver observer) {
        observer.assertError(ErrorCode.INTERNAL, "internal error: java.lang.StackOverflowError: of a test");
    }

    private void checkServes(ModelScheduler scheduler) {
        submit(scheduler);
        observers.getLast().await().response();
        observers.forEach(RecordingObserver::close);
        assertThat(scheduler.waiting()).isZero();
    }

    private void submit(ModelScheduler scheduler) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(request("m"), observer);
    }

    private ModelScheduler start(String name, FakeInstance instance, int maxBatch) {
        return ModelScheduler.start(
                new ModelPlan(settings(name, maxBatch), new BatchingPolicy(true, List.of(), 0)),
                List.of(new Instance("i0", Device.CPU, instance)),
                new SchedulerEnvironment(memory, name.equals("m") ? this::now : System::nanoTime, timer));
    }

    private long now() {
        if (next.compareAndSet(true, false)) {
            throw new StackOverflowError("of a test");
        }
        next.set(nextButOne.compareAndSet(true, false));
        return System.nanoTime();
    }

    private static ModelSettings settings(String name, int maxBatch) {
        return ModelSettings.builder(name, 1)
                .maxBatchSize(maxBatch)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
    }

    private CheckedRequest request(String model) {
        return Requests.to(settings(model, 8), memory)
                .floats("IN", Shape.of(1, 2), 1)
                .of(1);
    }
}
