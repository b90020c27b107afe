package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.QueuedRequests;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.Threads;
import dev.nereid.scheduler.TriedScheduler;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Instances that their backend keeps from work for a while. */
@Timeout(60)
final class InstanceAvailabilityTest {
    private static final String REASON = "process is started";
    private static final String STRANDED =
            "[request id: %s] model 'm' version 1 is being unloaded while none of its instances is available";

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final List<ModelScheduler> schedulers = new ArrayList<>();
    private final FakeInstance instance = new FakeInstance(FakeInstance::copy);
    private final FakeInstance other = new FakeInstance(FakeInstance::copy);

    private ModelScheduler start(ModelPlan plan, SchedulerEnvironment environment, FakeInstance... instances) {
        List<Instance> slots = new ArrayList<>();
        for (FakeInstance one : instances) {
            slots.add(SteppedScheduler.slot("i" + slots.size(), one, RateProfile.NONE));
        }
        return start(plan, slots, environment);
    }

    private ModelScheduler start(ModelPlan plan, List<Instance> slots, SchedulerEnvironment environment) {
        ModelScheduler scheduler = TriedScheduler.start(plan, slots, environment);
        schedulers.add(scheduler);
        return scheduler;
    }

    private ModelScheduler start(boolean isShort, FakeInstance... instances) {
        return start(
                new ModelPlan(model, BatchingPolicy.NONE).with(new ExecutionTraits("b", false, isShort)),
                new SchedulerEnvironment(memory, System::nanoTime, timer),
                instances);
    }

    private CheckedRequest request(String id) {
        return Requests.to(model, memory).id(id).floats("IN", Shape.of(1, 2), 1).of(1);
    }

    private RecordingObserver submit(ModelScheduler scheduler, String id) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(request(id), observer);
        return observer;
    }

    @AfterEach
    void completed() {
        for (RecordingObserver observer : observers) {
            observer.await().check();
            observer.close();
        }
        schedulers.forEach(ModelScheduler::close);
        assertThat(instance.violations()).isEmpty();
        assertThat(other.violations()).isEmpty();
    }

    @Test
    void leavesBatchesToOtherInstances() {
        instance.availability.unavailable(REASON); // as during its creation
        ModelScheduler scheduler = start(false, instance, other);
        for (String id : List.of("a", "b", "c")) {
            submit(scheduler, id).await();
        }
        assertThat(instance.batches()).isEmpty();

        other.availability.unavailable(REASON);
        instance.availability.available();
        submit(scheduler, "d").await();

        assertThat(other.batches()).containsExactly(List.of("a"), List.of("b"), List.of("c"));
        assertThat(instance.batches()).containsExactly(List.of("d"));
    }

    @Test
    void waitingRequestsGoOnWhenItIsAvailable() {
        ModelScheduler scheduler = start(false, instance);
        submit(scheduler, "a").await();
        Threads.awaitIdle(Threads.named("instance/m/1/i0"));
        instance.availability.unavailable(REASON);
        instance.availability.unavailable("still " + REASON);
        RecordingObserver waiting = submit(scheduler, "b");
        Threads.awaitIdle(Threads.named("instance/m/1/i0"));
        assertThat(waiting.isSilent()).isTrue();

        instance.availability.available();
        instance.availability.available();

        assertThat(waiting.await().responses()).hasSize(1);
    }

    @Test
    void isNotRunDirectly() {
        ModelScheduler scheduler = start(true, instance);
        instance.availability.unavailable(REASON);
        RecordingObserver waiting = submit(scheduler, "a");
        assertThat(waiting.isSilent()).isTrue();

        instance.availability.available(); // starts the instance's own thread
        assertThat(waiting.await().responses()).hasSize(1);
        Threads.awaitIdle(Threads.named("instance/m/1/i0"));

        assertThat(submit(scheduler, "b").hasEnded()).as("directly again").isTrue();
    }

    /** The backend finds that its process has ended. */
    @Test
    void endsTheExecutionInWhichItBecomesUnavailable() {
        FakeInstance[] self = new FakeInstance[1];
        FakeInstance dying = new FakeInstance(batch -> {
            self[0].availability.unavailable(REASON);
            throw new BackendException(ErrorCode.UNAVAILABLE, "process has ended");
        });
        self[0] = dying;
        for (boolean isShort : List.of(true, false)) {
            dying.availability.available();
            int before = dying.batches().size();
            ModelScheduler scheduler = start(isShort, dying);
            submit(scheduler, "a").await().assertError(ErrorCode.UNAVAILABLE, "process has ended");
            RecordingObserver waiting = submit(scheduler, "b");
            assertThat(waiting.isSilent()).isTrue();
            assertThat(dying.batches()).hasSize(before + 1);

            dying.availability.available();
            waiting.await().assertError(ErrorCode.UNAVAILABLE, "process has ended");
        }
    }

    /** The leader waits for a batch to fill; another instance goes on with that. */
    @Test
    void leavesABatchInFormation() {
        BatchingPolicy policy = new BatchingPolicy(true, List.of(2), Long.MAX_VALUE / 4, false, PriorityPolicy.NONE);
        ModelScheduler scheduler = start(
                new ModelPlan(model, policy),
                new SchedulerEnvironment(memory, System::nanoTime, timer),
                instance,
                other);
        submit(scheduler, "a");
        Threads.await("leads", () -> threads("instance/m/1/") == 1);
        boolean isFirst = Thread.getAllStackTraces().keySet().stream()
                .anyMatch(thread -> thread.getName().equals("instance/m/1/i0"));
        Thread leader = Threads.named("instance/m/1/i" + (isFirst ? 0 : 1));
        Threads.await("waits", () -> leader.getState() == Thread.State.TIMED_WAITING);
        FakeInstance leading = isFirst ? instance : other;

        leading.availability.unavailable(REASON);
        Threads.await("leads", () -> threads("instance/m/1/") == 2);
        submit(scheduler, "b").await();

        assertThat(leading.batches()).isEmpty();
        assertThat((isFirst ? other : instance).batches()).containsExactly(List.of("a", "b"));
    }

    private static long threads(String prefix) {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith(prefix))
                .count();
    }

    @Test
    void limitsOfTheQueueApplyWhileNoneIsAvailable() {
        QueuePolicy policy = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 5_000, false, 2);
        try (QueuedRequests queued = QueuedRequests.under(policy)) {
            queued.availability().unavailable(REASON);
            queued.submit("a");
            queued.scheduler.advance(3_000);
            queued.submit("b");
            queued.submit("c");
            queued.observer("c").assertError(ErrorCode.UNAVAILABLE, "[request id: c] Exceeds maximum queue size");
            assertThat(queued.scheduler.step()).isFalse();

            queued.scheduler.advance(3_000);
            queued.observer("a").assertError(ErrorCode.UNAVAILABLE, "Request timeout expired");
            queued.submit("d").cancel();
            queued.observer("d").assertError(ErrorCode.CANCELLED, "request was cancelled");

            queued.availability().available();
            assertThat(queued.scheduler.step()).isTrue();
            assertThat(queued.executed()).containsExactly("b");
        }
    }

    @Test
    void holdsNoPermit() {
        RateLimiter limiter = new RateLimiter(List.of());
        RateProfile one = new RateProfile(1, List.of(new RateProfile.Resource("R", true, 1)));
        SteppedScheduler scheduler = new SteppedScheduler(
                model,
                BatchPlanner.oneByOne(),
                BatchingPolicy.NONE,
                memory,
                ExecutionTraits.DEFAULT,
                limiter,
                one,
                instance,
                other);
        instance.availability.unavailable(REASON);
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(request("a"), observer);

        assertThat(scheduler.workers.get(0).step()).isFalse();
        assertThat(scheduler.workers.get(1).step()).isTrue();
        assertThat(other.batches()).containsExactly(List.of("a"));
    }

    /** Both instances wait for the one permit; the one that gets it first cannot use it. */
    @Test
    void releasesThePermitThatItDoesNotUse() {
        RateLimiter limiter = new RateLimiter(List.of());
        RateProfile one = new RateProfile(1, List.of(new RateProfile.Resource("R", true, 1)));
        List<DeferredExecution> deferred = new ArrayList<>();
        FakeInstance first = new FakeInstance(batch -> {
            deferred.add(batch.defer());
            FakeInstance.copy(batch);
        });
        SteppedScheduler scheduler = new SteppedScheduler(
                model,
                BatchPlanner.oneByOne(),
                BatchingPolicy.NONE,
                memory,
                ExecutionTraits.DEFAULT.withMaxDeferred(8),
                limiter,
                one,
                first,
                other);
        for (String id : List.of("a", "b")) {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            scheduler.submit(request(id), observer);
        }
        assertThat(scheduler.workers.get(0).step()).isTrue(); // holds the permit, and has requested another one
        assertThat(scheduler.workers.get(1).step()).isFalse();
        first.availability.unavailable(REASON);
        deferred.getFirst().complete();

        scheduler.workers.get(0).step(); // releases what it was granted
        Threads.await(
                "granted",
                () -> scheduler.workers.get(1).step() || !other.batches().isEmpty());

        assertThat(first.batches()).containsExactly(List.of("a"));
        assertThat(other.batches()).containsExactly(List.of("b"));
    }

    @Test
    void instancesOfADeviceThatAreAvailableExecute() {
        Device gpu = new Device(Device.Kind.GPU, 0);
        ModelPlan plan = new ModelPlan(model, BatchingPolicy.NONE)
                .with(new ExecutionTraits("blocking", AcceptedMemory.HOST, false, true));
        List<Instance> slots = new ArrayList<>();
        for (FakeInstance one : List.of(instance, other)) {
            slots.add(one.as("i" + slots.size(), gpu, RateProfile.NONE));
        }
        ModelScheduler scheduler = start(plan, slots, new SchedulerEnvironment(memory, System::nanoTime, timer));
        submit(scheduler, "a").await();
        other.availability.unavailable(REASON);
        submit(scheduler, "b").await();
        submit(scheduler, "c").await();
        assertThat(other.batches()).isEmpty();
        assertThat(instance.batches()).hasSize(3);

        instance.availability.unavailable(REASON);
        RecordingObserver waiting = submit(scheduler, "d");
        assertThat(waiting.isSilent()).isTrue();
        other.availability.available();
        waiting.await();
        assertThat(other.batches()).containsExactly(List.of("d"));
    }

    @Test
    void executesItsWarmup() throws InterruptedException {
        Warmup.Sample sample = new Warmup.Sample("s", 1, () -> List.of(request("warm")));
        instance.availability.unavailable(REASON);
        ModelScheduler scheduler = start(
                new ModelPlan(model, BatchingPolicy.NONE).with(List.of(sample)),
                new SchedulerEnvironment(memory, System::nanoTime, timer),
                instance);
        scheduler.awaitWarm();
        RecordingObserver waiting = submit(scheduler, "a");
        assertThat(instance.batches()).containsExactly(List.of("warm"));
        instance.availability.available();
        waiting.await();
    }

    @Test
    void theEndOfTheModelDoesNotWaitForIt() {
        ModelScheduler scheduler = start(false, instance);
        submit(scheduler, "a").await().close();
        instance.availability.unavailable(REASON);
        RecordingObserver waiting = submit(scheduler, "b");

        scheduler.close();

        waiting.assertError(ErrorCode.UNAVAILABLE, STRANDED.formatted("b"));
        assertThat(instance.isClosed()).isTrue();
        instance.availability.available(); // of a callback that comes too late
        instance.availability.unavailable(REASON);
    }

    @Test
    void anExpectedUnloadRefusesRequestsThatWaitInVain() {
        ModelScheduler scheduler = start(false, instance, other);
        instance.availability.unavailable(REASON);
        scheduler.expectUnload();
        submit(scheduler, "a").await();
        assertThat(other.batches()).containsExactly(List.of("a"));

        other.availability.unavailable(REASON);
        submit(scheduler, "b").await().assertError(ErrorCode.UNAVAILABLE, STRANDED.formatted("b"));

        other.availability.available();
        assertThat(submit(scheduler, "c").await().responses()).hasSize(1);
    }

    /** The last instance that would have taken the requests has become unavailable, or has gone. */
    @Test
    void refusesRequestsAfterTheStopWhenTheLastInstanceBecomesUnavailable() throws InterruptedException {
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch left = new CountDownLatch(1);
        FakeInstance busy = new FakeInstance(batch -> {
            entered.countDown();
            awaitUninterruptibly(left);
            FakeInstance.copy(batch);
        });
        instance.availability.unavailable(REASON);
        ModelScheduler scheduler = start(false, instance, busy);
        RecordingObserver submitted = submit(scheduler, "a");
        entered.await();
        RecordingObserver waiting = submit(scheduler, "b");
        scheduler.drain();
        assertThat(waiting.isSilent()).isTrue();

        busy.availability.unavailable(REASON);
        waiting.assertError(ErrorCode.UNAVAILABLE, STRANDED.formatted("b"));
        left.countDown();
        assertThat(submitted.await().responses()).hasSize(1);
        assertThat(busy.batches()).containsExactly(List.of("a"));
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void refusesRequestsThatComeBackAfterTheStop() {
        List<DeferredExecution> deferred = new CopyOnWriteArrayList<>();
        FakeInstance iterating = new FakeInstance(batch -> again(batch, deferred));
        SteppedScheduler scheduler = SteppedScheduler.iterative(
                model,
                BatchPlanner.oneByOne(),
                new PriorityPolicy(0, 0, QueuePolicy.NONE, Map.of()),
                memory,
                ExecutionTraits.DEFAULT.withMaxDeferred(8),
                iterating);
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(request("a"), observer);
        assertThat(scheduler.step()).isTrue();
        iterating.availability.unavailable(REASON);
        scheduler.queue.stop();

        deferred.getFirst().complete();

        observer.assertError(ErrorCode.UNAVAILABLE, STRANDED.formatted("a"));
        assertThat(scheduler.step()).isFalse();
        assertThat(scheduler.inFlight()).isZero();
    }

    private static void again(Batch batch, List<DeferredExecution> deferred) {
        FakeInstance.copy(batch);
        batch.requests().getFirst().reschedule();
        deferred.add(batch.defer());
    }
}
