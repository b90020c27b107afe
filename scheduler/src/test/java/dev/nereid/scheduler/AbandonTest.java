package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferenceException;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.rate.RateLimitRegistration;
import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Completion of requests for which the server stops waiting. */
@Timeout(60)
final class AbandonTest {
    private static final String STOPPED =
            "Server is stopping, scheduler for model has stopped accepting new inference requests";
    private static final String EXECUTING = "Server is stopping, and could not wait for the end of the execution";

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final List<InferenceRequest> requests = new CopyOnWriteArrayList<>();
    private final CountDownLatch inside = new CountDownLatch(1);
    private final CountDownLatch go = new CountDownLatch(1);
    private final List<RecordingObserver> observers = new ArrayList<>();
    private FakeInstance.Execution execution = FakeInstance::copy;
    private final FakeInstance instance = new FakeInstance(batch -> {
        requests.addAll(batch.requests());
        execution.execute(batch);
    });

    @AfterEach
    void noMistakes() {
        observers.forEach(RecordingObserver::check);
        assertThat(instance.violations()).isEmpty();
    }

    @Test
    void completesRemainingRequests() throws InterruptedException {
        execution = batch -> {
            hang();
            FakeInstance.copy(batch);
        };
        ModelScheduler scheduler = start(model(false), Optional.empty());
        RecordingObserver executing = submit(scheduler, "a");
        inside.await();
        RecordingObserver waiting = submit(scheduler, "b");

        scheduler.abandon();

        executing.assertError(ErrorCode.UNAVAILABLE, "[request id: a] " + EXECUTING);
        waiting.assertError(ErrorCode.UNAVAILABLE, "[request id: b] " + STOPPED);
        submit(scheduler, "c").assertError(ErrorCode.UNAVAILABLE, "[request id: c] " + STOPPED);
        assertThat(scheduler.statistics().failures())
                .containsEntry(FailureReason.REJECTED, 2L)
                .containsEntry(FailureReason.OTHER, 1L);
        go.countDown();
        scheduler.close();
    }

    @Test
    void leavesTheMemoryToTheBackendUntilItIsDone() throws InterruptedException {
        List<Float> read = new CopyOnWriteArrayList<>();
        execution = batch -> {
            hang();
            read.add(batch.gather("IN").data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0));
            FakeInstance.copy(batch);
        };
        ModelScheduler scheduler = start(model(false), Optional.empty());
        RecordingObserver observer = submit(scheduler, "a");
        inside.await();

        scheduler.abandon();
        scheduler.abandon();

        assertThat(observer.hasEnded()).isTrue();
        assertThat(scheduler.inFlight()).as("the backend may read the input").isEqualTo(1);
        go.countDown();
        scheduler.close();
        assertThat(read).containsExactly(1f);
        assertThat(scheduler.inFlight()).isZero();
    }

    @Test
    void notifiesTheBackendFirst() throws InterruptedException {
        List<String> order = new CopyOnWriteArrayList<>();
        execution = batch -> {
            InferenceRequest request = batch.requests().getFirst();
            request.onCancel(() -> {
                order.add(observers.getFirst().hasEnded() ? "completed" : "notified the backend");
                go.countDown();
            });
            hang();
            order.add(request.isCancelled() ? "cancelled" : "not cancelled");
            throw new BackendException(ErrorCode.INTERNAL, "terminated");
        };
        ModelScheduler scheduler = start(model(false), Optional.empty());
        RecordingObserver observer = submit(scheduler, "a");
        inside.await();

        scheduler.abandon();
        scheduler.close();

        assertThat(order).containsExactly("notified the backend", "cancelled");
        observer.assertError(ErrorCode.UNAVAILABLE, "[request id: a] " + EXECUTING);
    }

    @Test
    void completesADeferredExecution() throws InterruptedException {
        List<DeferredExecution> deferred = new CopyOnWriteArrayList<>();
        execution = batch -> {
            FakeInstance.copy(batch);
            deferred.add(batch.defer());
            inside.countDown();
        };
        ModelScheduler scheduler = start(model(false), Optional.empty());
        RecordingObserver observer = submit(scheduler, "a");
        inside.await();

        scheduler.abandon();

        observer.await().assertError(ErrorCode.UNAVAILABLE, "[request id: a] " + EXECUTING);
        assertThat(scheduler.inFlight()).isEqualTo(1);
        deferred.getFirst().complete();
        scheduler.close();
        assertThat(scheduler.inFlight()).isZero();
    }

    @Test
    void endsResponsesThatGoOn() throws InterruptedException {
        List<ResponseSender> senders = new CopyOnWriteArrayList<>();
        execution = batch -> {
            senders.add(batch.requests().getFirst().sender());
            inside.countDown();
        };
        ModelScheduler scheduler = start(model(true), Optional.empty());
        RecordingObserver observer = submit(scheduler, "a");
        inside.await();

        scheduler.abandon();

        observer.await().assertError(ErrorCode.UNAVAILABLE, "[request id: a] " + EXECUTING);
        assertThat(senders.getFirst().isCancelled()).isTrue();
        assertThat(scheduler.inFlight()).as("the backend may read the input").isEqualTo(1);
        try {
            senders.getFirst().complete();
        } finally {
            scheduler.close();
        }
        assertThat(observer.responses()).isEmpty();
        assertThat(scheduler.inFlight()).isZero();
    }

    /** The end may come between any two responses, and before the stream is opened. */
    @Test
    void sendsNothingAfterTheTerminalResponse() throws InterruptedException {
        for (int round = 0; round < 200; round++) {
            CountDownLatch begun = new CountDownLatch(1);
            FakeInstance talkative = new FakeInstance(batch -> {
                begun.countDown();
                ResponseSender sender = batch.requests().getFirst().sender();
                for (int i = 0; i < 50; i++) {
                    sender.send(sender.newResponse());
                }
                sender.complete();
            });
            ModelScheduler scheduler = ModelScheduler.start(
                    new ModelPlan(model(true), BatchingPolicy.NONE),
                    List.of(new Instance("i0", Device.CPU, talkative)),
                    new SchedulerEnvironment(memory, System::nanoTime, timer));
            RecordingObserver observer = submit(scheduler, "a");
            begun.await();
            for (int spin = 0; spin < round * 10; spin++) {
                Thread.onSpinWait();
            }

            scheduler.abandon();

            observer.await().check();
            int received = observer.responses().size();
            observer.close();
            scheduler.close();
            assertThat(observer.responses()).hasSize(received);
            assertThat(scheduler.inFlight()).isZero();
        }
    }

    @Test
    void completesRequestsThatWaitForAPermit() {
        RateLimiter limiter = new RateLimiter(List.of());
        RateProfile all = new RateProfile(1, List.of(new RateProfile.Resource("R", true, 1)));
        RateLimitRegistration held = limiter.register(Device.CPU, all);
        held.stage(() -> {});
        ModelScheduler scheduler = ModelScheduler.start(
                new ModelPlan(model(false), BatchingPolicy.NONE),
                List.of(new Instance("i0", Device.CPU, instance, all, Instance.ThreadPlacement.ANYWHERE)),
                new SchedulerEnvironment(memory, System::nanoTime, timer).with(limiter));
        RecordingObserver observer = submit(scheduler, "a");
        Threads.await("an instance waits", () -> limiter.waiting() > 0);

        scheduler.abandon();

        observer.assertError(ErrorCode.UNAVAILABLE, "[request id: a] " + STOPPED);
        held.release();
        scheduler.close();
        assertThat(requests).isEmpty();
    }

    @Test
    void completesRequestsDuringACacheLookup() {
        FakeCache cache = new FakeCache();
        cache.waits = true;
        ModelScheduler scheduler = start(model(false), Optional.of(new CacheAccess(cache, Runnable::run)));
        RecordingObserver observer = submit(scheduler, "a");
        assertThat(observer.isSilent()).isTrue();

        scheduler.abandon();

        observer.assertError(ErrorCode.UNAVAILABLE, "[request id: a] " + STOPPED);
        cache.respondOnly();
        scheduler.close();
        assertThat(requests).isEmpty();
    }

    @Test
    void leavesCancelledRequestsAlone() throws InterruptedException {
        execution = batch -> {
            hang();
            FakeInstance.copy(batch);
        };
        ModelScheduler scheduler = start(model(false), Optional.empty());
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        Cancellation handle = scheduler.submit(request(model(false), "a"), observer);
        inside.await();
        handle.cancel();

        scheduler.abandon();

        observer.assertError(ErrorCode.CANCELLED, "request was cancelled");
        go.countDown();
        scheduler.close();
    }

    /** Requests between queue and backend at that moment complete too, and none completes twice. */
    @Test
    void abandonsRequestsInTransit() throws InterruptedException {
        for (int round = 0; round < 200; round++) {
            List<DeferredExecution> deferred = new CopyOnWriteArrayList<>();
            // Ends no request by itself: only the abandonment completes them.
            FakeInstance quick = new FakeInstance(batch -> deferred.add(batch.defer()));
            ModelScheduler scheduler = ModelScheduler.start(
                    new ModelPlan(model(false), BatchingPolicy.NONE),
                    List.of(new Instance("i0", Device.CPU, quick)),
                    new SchedulerEnvironment(memory, System::nanoTime, timer));
            List<RecordingObserver> received = new CopyOnWriteArrayList<>();
            Thread client = Thread.ofPlatform().start(() -> {
                for (int i = 0; i < 20; i++) {
                    RecordingObserver observer = new RecordingObserver();
                    received.add(observer);
                    scheduler.submit(Requests.to(model(false), memory).of(1), observer);
                }
            });
            for (int spin = 0; spin < round * 20; spin++) {
                Thread.onSpinWait();
            }

            scheduler.abandon();
            client.join();

            received.forEach(observer -> {
                InferenceException error = observer.await().error();
                assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            });
            while (scheduler.inFlight() > 0) { // one may be about to be deferred
                deferred.forEach(DeferredExecution::complete);
                Thread.onSpinWait();
            }
            scheduler.close();
        }
    }

    /** Waits in an execution. */
    private void hang() {
        inside.countDown();
        try {
            go.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private ModelScheduler start(ModelSettings model, Optional<CacheAccess> cache) {
        return ModelScheduler.start(
                new ModelPlan(model, BatchingPolicy.NONE),
                List.of(new Instance("i0", Device.CPU, instance)),
                new SchedulerEnvironment(memory, System::nanoTime, timer).with(cache));
    }

    private static ModelSettings model(boolean decoupled) {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .decoupled(decoupled)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
    }

    private CheckedRequest request(ModelSettings model, String id) {
        return Requests.to(model, memory).id(id).floats("IN", Shape.of(1, 2), 1).of(1);
    }

    private RecordingObserver submit(ModelScheduler scheduler, String id) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(request(model(false), id), observer);
        return observer;
    }
}
