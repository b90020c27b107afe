package dev.nereid.scheduler.admission;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the limits of requests in flight, and refusals beyond them. */
@Timeout(60)
final class AdmissionTest {
    private static final String REQUESTS = "Exceeds maximum number of requests in flight";
    private static final String BYTES = "Exceeds maximum number of bytes in flight";

    /** The bytes of a request of one item. */
    private static final long ITEM = 2 * Float.BYTES;

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final BlockingQueue<DeferredExecution> executions = new LinkedBlockingQueue<>();
    private final List<ModelScheduler> schedulers = new ArrayList<>();
    private final List<RecordingObserver> observers = new ArrayList<>();
    private AdmissionCounts server = new AdmissionCounts(AdmissionLimits.NONE);

    @AfterEach
    void everythingEnds() {
        schedulers.forEach(ModelScheduler::close);
        observers.forEach(RecordingObserver::check);
        assertThat(observers).allMatch(RecordingObserver::hasEnded);
        assertThat(server.requests.count()).isZero();
        assertThat(server.bytes.count()).isZero();
    }

    @Test
    void refusesAtOnceWhatIsOneTooMany() throws InterruptedException {
        ModelScheduler scheduler = start(new AdmissionLimits(2, 0));
        RecordingObserver first = submit(scheduler, "a", 1);
        RecordingObserver second = submit(scheduler, "b", 1);

        submit(scheduler, "c", 1).assertError(ErrorCode.UNAVAILABLE, "[request id: c] " + REQUESTS);
        submit(scheduler, "", 1).assertError(ErrorCode.UNAVAILABLE, "[request id: <id_unknown>] " + REQUESTS);

        assertThat(scheduler.inFlight()).as("memory is back").isEqualTo(2);
        finish(first, second);
    }

    @Test
    void returnsARetryDelay() throws InterruptedException {
        ModelScheduler scheduler = start(new AdmissionLimits(1, 0));
        RecordingObserver first = submit(scheduler, "a", 1);

        InferenceException refused = submit(scheduler, "b", 1).error();

        assertThat(refused.retryAfter()).contains(Duration.ofSeconds(1));
        finish(first);
    }

    @Test
    void marksRefusedRequestsAsRefused() throws InterruptedException {
        ModelScheduler scheduler = start(new AdmissionLimits(1, 0));
        RecordingObserver first = submit(scheduler, "a", 1);
        AtomicReference<InferenceException> refused = new AtomicReference<>();

        scheduler.submit(request("b", 1), new ResponseObserver() {
            @Override
            public void onResponse(InferResponse response) {
                response.close();
            }

            @Override
            public void onCompleted() {}

            @Override
            public void onError(InferenceException error) {}

            @Override
            public void onRefused(InferenceException error) {
                refused.set(error);
            }
        });

        assertThat(refused.get()).hasMessageContaining(REQUESTS);
        finish(first);
    }

    @Test
    void boundsTheBytesOfInputs() throws InterruptedException {
        ModelScheduler scheduler = start(new AdmissionLimits(0, 4 * ITEM));
        RecordingObserver first = submit(scheduler, "a", 3);

        submit(scheduler, "b", 2).assertError(ErrorCode.UNAVAILABLE, "[request id: b] " + BYTES);
        RecordingObserver fits = submit(scheduler, "c", 1);
        submit(scheduler, "d", 1).assertError(ErrorCode.UNAVAILABLE, "[request id: d] " + BYTES);

        finish(first, fits);
        finish(submit(scheduler, "e", 4));
    }

    @Test
    void refusesWhatCouldNeverFit() {
        ModelScheduler scheduler = start(new AdmissionLimits(0, ITEM));

        submit(scheduler, "a", 2).assertError(ErrorCode.UNAVAILABLE, "[request id: a] " + BYTES);
    }

    @Test
    void takesTheNextOnceAResponseIsClosed() throws InterruptedException {
        ModelScheduler scheduler = start(new AdmissionLimits(1, ITEM));
        RecordingObserver first = submit(scheduler, "a", 1);
        executions.take().complete();
        first.await();

        assertThat(submit(scheduler, "b", 1).hasEnded()).as("refused").isTrue();
        first.close();
        finish(submit(scheduler, "c", 1));
    }

    @Test
    void boundsAllModelsTogether() throws InterruptedException {
        server = new AdmissionCounts(new AdmissionLimits(2, 3 * ITEM));
        ModelScheduler one = start(AdmissionLimits.NONE);
        ModelScheduler other = start(AdmissionLimits.NONE);
        RecordingObserver first = submit(one, "a", 1);

        submit(other, "b", 3).assertError(ErrorCode.UNAVAILABLE, "[request id: b] " + BYTES);
        RecordingObserver second = submit(other, "c", 2);
        submit(other, "d", 1).assertError(ErrorCode.UNAVAILABLE, "[request id: d] " + REQUESTS);
        submit(one, "e", 1).assertError(ErrorCode.UNAVAILABLE, "[request id: e] " + REQUESTS);

        finish(first, second);
        finish(submit(one, "f", 3));
    }

    @Test
    void countsWhatItRefusesAsRejected() throws InterruptedException {
        ModelScheduler scheduler = start(new AdmissionLimits(1, 0));
        RecordingObserver first = submit(scheduler, "a", 1);

        submit(scheduler, "b", 1);
        submit(scheduler, "c", 1);

        assertThat(scheduler.statistics().failures()).containsEntry(FailureReason.REJECTED, 2L);
        finish(first);
    }

    @Test
    void reportsTheStopBeforeTheLimit() {
        ModelScheduler scheduler = start(new AdmissionLimits(0, ITEM));
        scheduler.close();

        submit(scheduler, "a", 2)
                .assertError(
                        ErrorCode.UNAVAILABLE,
                        "[request id: a] Server is stopping, scheduler for model has stopped accepting new inference"
                                + " requests");
        assertThat(observers.getLast().error().retryAfter()).isEmpty();
    }

    @Test
    void failsAndUncountsRequestsThatCannotBeCreated() {
        ModelSettings shaped = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
        server = new AdmissionCounts(new AdmissionLimits(1, ITEM));
        ModelScheduler scheduler = start(shaped, AdmissionLimits.NONE);
        Tensor unreadable;
        try (Arena arena = Arena.ofConfined()) {
            unreadable = Tensor.of(DataType.FP32, Shape.of(2), arena.allocate(ITEM));
        }
        AtomicInteger released = new AtomicInteger();

        for (int i = 1; i <= 2; i++) { // the second time, the limit admits it again
            CheckedRequest request = Requests.to(shaped, memory)
                    .input("IN", unreadable)
                    .onRelease(released::incrementAndGet)
                    .of(1);
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            scheduler.submit(request, observer).cancel();
            assertThat(observer.error().code()).isEqualTo(ErrorCode.INTERNAL);
            assertThat(observer.error().publicMessage())
                    .isEqualTo("internal error: java.lang.IllegalStateException: Already closed");
            assertThat(released).hasValue(i);
        }
        assertThat(scheduler.inFlight()).isZero();
        assertThat(scheduler.statistics().failures()).containsOnly(Map.entry(FailureReason.OTHER, 2L));
    }

    /** The first time, no request is made; the second time, it has its place in the queue already. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void failsRequestsThatCannotBeQueued(int failingLook) throws InterruptedException {
        Thread submitter = Thread.currentThread();
        AtomicInteger looks = new AtomicInteger(Integer.MIN_VALUE); // none of the start counts
        server = new AdmissionCounts(new AdmissionLimits(1, ITEM));
        ModelScheduler scheduler = start(model, AdmissionLimits.NONE, () -> {
            if (Thread.currentThread().equals(submitter) && looks.incrementAndGet() == failingLook) {
                throw new IllegalStateException("no time");
            }
            return 0;
        });
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);

        looks.set(0);
        scheduler.submit(request("a", 1), observer).cancel();

        observer.assertError(ErrorCode.INTERNAL, "internal error: java.lang.IllegalStateException: no time");
        assertThat(scheduler.inFlight()).isZero();
        assertThat(scheduler.waiting()).isZero();
        assertThat(memory.bytesInUse()).isZero();
        assertThat(executions).isEmpty();
        finish(submit(scheduler, "b", 1)); // the limit admits it
    }

    @Test
    void takesAnyNumberWithoutABound() throws InterruptedException {
        ModelScheduler scheduler = start(AdmissionLimits.NONE);
        List<RecordingObserver> all = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            all.add(submit(scheduler, String.valueOf(i), 8));
        }

        finish(all.toArray(RecordingObserver[]::new));
    }

    @Test
    void refusesBoundsBelowNone() {
        assertThat(catchThrowable(() -> new AdmissionLimits(-1, 0)))
                .hasMessage("limits: -1 requests, 0 bytes (expected: each 0 or more)");
    }

    private ModelScheduler start(AdmissionLimits limits) {
        return start(model, limits);
    }

    private ModelScheduler start(ModelSettings settings, AdmissionLimits limits) {
        return start(settings, limits, new FakeClock());
    }

    private ModelScheduler start(ModelSettings settings, AdmissionLimits limits, LongSupplier clock) {
        FakeInstance instance = new FakeInstance(batch -> {
            FakeInstance.copy(batch);
            executions.add(batch.defer());
        });
        ModelScheduler scheduler = ModelScheduler.start(
                new ModelPlan(settings, BatchingPolicy.NONE).with(limits),
                List.of(new Instance("i0", Device.CPU, instance)),
                new SchedulerEnvironment(memory, clock, new TimeoutQueue(() -> {})).with(server));
        schedulers.add(scheduler);
        return scheduler;
    }

    private CheckedRequest request(String id, int items) {
        return Requests.to(model, memory)
                .id(id)
                .floats("IN", Shape.of(items, 2), 1)
                .of(items);
    }

    private RecordingObserver submit(ModelScheduler scheduler, String id, int items) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(request(id, items), observer);
        return observer;
    }

    /** Ends executions, and closes their responses. */
    private void finish(RecordingObserver... taken) throws InterruptedException {
        for (int i = 0; i < taken.length; i++) {
            executions.take().complete();
        }
        for (RecordingObserver observer : taken) {
            observer.await().response();
            observer.close();
        }
    }
}
