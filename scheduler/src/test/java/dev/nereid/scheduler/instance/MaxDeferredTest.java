package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.Threads;
import dev.nereid.scheduler.TriedScheduler;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Instances that may have a limited number of deferred executions. */
@Timeout(60)
final class MaxDeferredTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final List<DeferredExecution> deferred = new CopyOnWriteArrayList<>();
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final FakeInstance instance = new FakeInstance(this::defer);
    private final FakeInstance other = new FakeInstance(this::defer);

    private void defer(dev.nereid.spi.Batch batch) {
        DeferredExecution execution = batch.defer();
        FakeInstance.copy(batch);
        deferred.add(execution); // may be finished from now on
    }

    private static ExecutionTraits traits(int limit, boolean shortExecutions) {
        return new ExecutionTraits("b", false, shortExecutions).withMaxDeferred(limit);
    }

    private ModelScheduler start(ExecutionTraits traits, FakeInstance... instances) {
        List<Instance> slots = new ArrayList<>();
        for (FakeInstance one : instances) {
            slots.add(one.as("i" + slots.size(), Device.CPU, RateProfile.NONE));
        }
        return TriedScheduler.start(
                new ModelPlan(model, BatchingPolicy.NONE).with(traits),
                slots,
                new SchedulerEnvironment(memory, System::nanoTime, timer));
    }

    private RecordingObserver submit(ModelScheduler scheduler, String id) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(
                Requests.to(model, memory)
                        .id(id)
                        .floats("IN", Shape.of(1, 2), 1)
                        .of(1),
                observer);
        return observer;
    }

    private void awaitDeferred(int number) {
        Threads.await("deferred " + number, () -> deferred.size() == number);
    }

    @AfterEach
    void completed() {
        for (RecordingObserver observer : observers) {
            observer.await().check();
            observer.close();
        }
        assertThat(instance.violations()).isEmpty();
        assertThat(other.violations()).isEmpty();
    }

    @Test
    void isAtLeastOne() {
        assertThatIllegalArgumentException().isThrownBy(() -> traits(0, false));
    }

    /** The limits of the load bound them. */
    @Test
    void requestsWithASenderDoNotCount() {
        List<ResponseSender> senders = new ArrayList<>();
        SteppedScheduler scheduler = new SteppedScheduler(
                model,
                BatchPlanner.oneByOne(),
                BatchingPolicy.NONE,
                memory,
                traits(1, false),
                new FakeInstance(
                        batch -> senders.add(batch.requests().getFirst().sender())));
        for (int i = 0; i < 3; i++) {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            scheduler.submit(
                    Requests.to(model, memory).floats("IN", Shape.of(1, 2), 1).of(1), observer);
            assertThat(scheduler.step()).isTrue();
        }

        assertThat(senders).hasSize(3);
        senders.forEach(sender -> sender.fail(new BackendException(ErrorCode.NOT_FOUND, "none")));
    }

    @Test
    void takesTheNextBatchWhenAnExecutionHasEnded() {
        SteppedScheduler scheduler = new SteppedScheduler(
                model, BatchPlanner.oneByOne(), BatchingPolicy.NONE, memory, traits(2, false), instance);
        for (int i = 0; i < 4; i++) {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            scheduler.submit(
                    Requests.to(model, memory).floats("IN", Shape.of(1, 2), 1).of(1), observer);
        }

        assertThat(scheduler.step()).isTrue();
        assertThat(scheduler.step()).isTrue();
        assertThat(scheduler.step()).isFalse();
        deferred.get(1).complete();
        assertThat(scheduler.step()).isTrue();
        assertThat(scheduler.step()).isFalse();
        assertThat(scheduler.queue.waiting()).isEqualTo(1);
        deferred.get(0).complete();
        deferred.get(2).complete();
        assertThat(scheduler.step()).isTrue();
        deferred.get(3).complete();
    }

    @Test
    void wakesTheInstanceAtTheEnd() {
        try (ModelScheduler scheduler = start(traits(1, false), instance)) {
            submit(scheduler, "a");
            awaitDeferred(1);
            RecordingObserver second = submit(scheduler, "b");
            Threads.awaitIdle(Threads.named("instance/m/1/i0"));
            assertThat(scheduler.waiting()).isEqualTo(1);
            assertThat(second.isSilent()).isTrue();

            deferred.getFirst().complete();
            awaitDeferred(2);
            deferred.get(1).complete();
            completed();
        }
    }

    @Test
    void spreadsDeferredExecutionsOverTheInstances() {
        try (ModelScheduler scheduler = start(traits(8, false), instance, other)) {
            for (int i = 1; i <= 6; i++) {
                submit(scheduler, "a");
                awaitDeferred(i);
                Threads.awaitIdle(Threads.named("instance/m/1/i0"));
                if (i > 1) {
                    Threads.awaitIdle(Threads.named("instance/m/1/i1"));
                }
            }
            assertThat(instance.batches()).hasSize(3);
            assertThat(other.batches()).hasSize(3);
            deferred.forEach(DeferredExecution::complete);
            completed();
        }
    }

    @Test
    void leavesRequestsToOtherInstances() {
        try (ModelScheduler scheduler = start(traits(1, false), instance, other)) {
            submit(scheduler, "a");
            awaitDeferred(1);
            submit(scheduler, "b");
            awaitDeferred(2);
            submit(scheduler, "c");
            Threads.awaitIdle(Threads.named("instance/m/1/i0"));
            Threads.awaitIdle(Threads.named("instance/m/1/i1"));
            assertThat(scheduler.waiting()).isEqualTo(1);
            deferred.get(1).complete();
            awaitDeferred(3);
            deferred.forEach(DeferredExecution::complete);
            completed();
        }
    }

    @Test
    void limitsDirectExecution() {
        try (ModelScheduler scheduler = start(traits(1, true), instance)) {
            submit(scheduler, "a");
            assertThat(deferred).hasSize(1);
            submit(scheduler, "b");
            assertThat(deferred).hasSize(1);
            assertThat(scheduler.waiting()).isEqualTo(1);

            deferred.getFirst().complete();
            awaitDeferred(2);
            Threads.awaitIdle(Threads.named("instance/m/1/i0"));
            deferred.get(1).complete();
            submit(scheduler, "c");
            assertThat(deferred).as("directly again").hasSize(3);
            deferred.get(2).complete();
            completed();
        }
    }

    @Test
    void executesTheRestAfterTheStop() throws InterruptedException {
        ModelScheduler scheduler = start(traits(1, false), instance);
        submit(scheduler, "a");
        awaitDeferred(1);
        submit(scheduler, "b");
        Threads.awaitIdle(Threads.named("instance/m/1/i0"));

        Thread closing = Thread.ofPlatform().start(scheduler::close);
        Threads.await("stopped", () -> !scheduler.isServing());
        assertThat(deferred).hasSize(1);
        deferred.getFirst().complete();
        awaitDeferred(2);
        deferred.get(1).complete();
        completed();
        closing.join();

        assertThat(observers).allMatch(observer -> observer.responses().size() == 1);
    }

    /** Its own executions end when nothing is left to take. */
    @Test
    void leavesAfterTheStopIfOthersTookTheRest() throws InterruptedException {
        ModelScheduler scheduler = start(traits(1, false), instance, other);
        submit(scheduler, "a");
        awaitDeferred(1);
        submit(scheduler, "b");
        awaitDeferred(2);
        submit(scheduler, "c");
        Threads.awaitIdle(Threads.named("instance/m/1/i0"));
        Threads.awaitIdle(Threads.named("instance/m/1/i1"));
        Thread closing = Thread.ofPlatform().start(scheduler::close);
        Threads.await("stopped", () -> !scheduler.isServing());
        deferred.get(1).complete();
        awaitDeferred(3);

        deferred.get(0).complete();
        deferred.get(2).complete();
        completed();
        closing.join();

        assertThat(instance.isClosed()).isTrue();
        assertThat(other.isClosed()).isTrue();
    }

    @Test
    void endsItsWaitWhenRetired() throws InterruptedException {
        try (ModelScheduler scheduler = start(traits(1, false), instance, other)) {
            submit(scheduler, "a");
            awaitDeferred(1);
            submit(scheduler, "b");
            awaitDeferred(2);
            scheduler.replace(List.of(), List.of(instance.scheduled()), List.of());
            submit(scheduler, "c");
            deferred.forEach(DeferredExecution::complete);
            awaitDeferred(3);
            assertThat(other.batches()).contains(List.of("c"));
            deferred.get(2).complete();
            completed();
            Threads.await("closed", instance::isClosed);
        }
    }

    @Test
    void endsItsWaitWhenAbandoned() {
        ModelScheduler scheduler = start(traits(1, false), instance);
        RecordingObserver first = submit(scheduler, "a");
        awaitDeferred(1);
        RecordingObserver second = submit(scheduler, "b");
        Threads.awaitIdle(Threads.named("instance/m/1/i0"));

        scheduler.abandon();
        assertThat(first.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(second.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
        deferred.getFirst().complete();
        scheduler.close();
    }

    @Test
    void waitsBeforeItRequestsAPermit() {
        RateLimiter limiter = new RateLimiter(List.of());
        RateProfile one = new RateProfile(1, List.of(new RateProfile.Resource("R", true, 2)));
        ModelScheduler scheduler = TriedScheduler.start(
                new ModelPlan(model, BatchingPolicy.NONE).with(traits(1, false)),
                List.of(new Instance("i0", Device.CPU, instance, one, Instance.ThreadPlacement.ANYWHERE)),
                new SchedulerEnvironment(memory, System::nanoTime, timer).with(limiter));
        submit(scheduler, "a");
        awaitDeferred(1);
        submit(scheduler, "b");
        Threads.awaitIdle(Threads.named("instance/m/1/i0"));
        assertThat(limiter.waiting()).isZero();

        deferred.getFirst().complete();
        awaitDeferred(2);
        deferred.get(1).complete();
        completed();
        scheduler.close();
    }
}
