package dev.nereid.scheduler.rate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.Cancellation;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** The order of permits, and the states of instances. Without threads. */
final class RateLimiterTest {
    private static final String R = "R";

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final RateLimiter limiter =
            new RateLimiter(List.of(new RateLimiter.ResourceLimit(R, 2, OptionalInt.empty())));
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final List<String> grants = new ArrayList<>();
    private final Map<String, RecordingObserver> observers = new HashMap<>();
    private final List<FakeInstance> instances = new ArrayList<>();

    private RateLimitRegistration register(int priority, int count) {
        return limiter.register(
                Device.CPU,
                new RateProfile(priority, count == 0 ? List.of() : List.of(new RateProfile.Resource(R, true, count))));
    }

    private void stage(RateLimitRegistration registration, String name) {
        registration.stage(() -> grants.add(name));
    }

    @Test
    void goesThroughItsStates() {
        RateLimitRegistration registration = register(1, 1);
        assertThatThrownBy(registration::release)
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("release: AVAILABLE (expected: ALLOCATED)");

        RateLimitRegistration other = register(1, 2);
        stage(other, "other");
        stage(registration, "first");
        assertThatThrownBy(registration::release).hasMessage("release: STAGED (expected: ALLOCATED)");
        assertThatThrownBy(() -> stage(registration, "again"))
                .hasMessage("stage: called again before the permit was granted");
        other.release();
        assertThat(grants).containsExactly("other", "first");
        registration.release();
        assertThatThrownBy(registration::release).hasMessage("release: AVAILABLE (expected: ALLOCATED)");
        stage(registration, "first");
        registration.release();
        registration.close();
        assertThatThrownBy(() -> stage(registration, "late")).hasMessage("stage: the registration is closed");
    }

    @Test
    void grantsWhatFits() {
        stage(register(1, 1), "a");
        stage(register(1, 1), "b");
        stage(register(1, 0), "nothing needed");
        stage(register(1, 1), "c");

        assertThat(grants).containsExactly("a", "b", "nothing needed");
        assertThat(limiter.waiting()).isEqualTo(1);
    }

    @Test
    void waitsForARelease() {
        RateLimitRegistration first = register(1, 2);
        stage(first, "first");
        stage(register(1, 1), "second");
        assertThat(grants).containsExactly("first");

        first.release();

        assertThat(grants).containsExactly("first", "second");
    }

    @Test
    void grantsWhatFitsSinceAnotherInstanceNeedsMore() {
        RateLimiter unlimited = new RateLimiter(List.of());
        RateLimitRegistration running = unlimited.register(Device.CPU, needing(1));
        RateLimitRegistration first = unlimited.register(Device.CPU, needing(1));
        stage(running, "running");
        stage(first, "first");
        assertThat(grants).containsExactly("running");

        unlimited.register(Device.CPU, needing(2));

        assertThat(grants).containsExactly("running", "first");
        assertThat(unlimited.waiting()).isZero();
    }

    private static RateProfile needing(int count) {
        return new RateProfile(1, List.of(new RateProfile.Resource(R, true, count)));
    }

    @Test
    void theHigherPriorityGoesFirstAmongEquals() {
        RateLimitRegistration running = register(1, 2);
        stage(running, "running");
        stage(register(3, 2), "third");
        stage(register(2, 2), "second");
        stage(register(2, 2), "second, later");

        running.release();

        assertThat(grants).containsExactly("running", "second");
    }

    @Test
    void sharesPermitsByPriority() {
        Map<String, Integer> counts = new HashMap<>();
        RateLimitRegistration low = register(2, 2);
        RateLimitRegistration high = register(1, 2);
        stage(low, "low");
        stage(high, "high");
        for (int i = 0; i < 300; i++) {
            String name = grants.getLast();
            counts.merge(name, 1, Integer::sum);
            RateLimitRegistration running = name.equals("low") ? low : high;
            stage(running, name); // there is always more to do
            running.release();
        }

        assertThat(counts).containsEntry("high", 200).containsEntry("low", 100);
    }

    @Test
    void theFirstBlocksSmallerOnesBehindIt() {
        RateLimitRegistration running = register(1, 1);
        stage(running, "running");
        stage(register(1, 2), "large");
        stage(register(1, 1), "small");
        stage(register(1, 0), "nothing needed");
        assertThat(grants).as("there is one left, but not for them").containsExactly("running");

        running.release();

        assertThat(grants).containsExactly("running", "large");
    }

    @Test
    void countsExecutions() {
        RateLimitRegistration registration = register(3, 1);
        assertThat(registration.load()).isZero();
        stage(registration, "a");
        registration.release();
        assertThat(registration.load()).isEqualTo(3);
        stage(registration, "b");
        registration.releaseUnused();
        assertThat(registration.load()).as("nothing was executed").isEqualTo(3);
    }

    @Test
    void countsPriorityNoneAsOne() {
        RateLimitRegistration registration = register(0, 1);
        stage(registration, "a");
        registration.release();
        assertThat(registration.load()).isEqualTo(1);
    }

    @Test
    void ordersInstancesOfAllModels() {
        RateLimitRegistration often = register(1, 2);
        RateLimitRegistration seldom = register(1, 2);
        RateLimitRegistration never = register(1, 2);
        stage(often, "often");
        often.release();
        stage(often, "often");
        often.release();
        stage(seldom, "seldom");
        seldom.release();
        grants.clear();
        RateLimitRegistration running = register(1, 2);
        stage(running, "running");

        stage(often, "often");
        stage(seldom, "seldom");
        stage(never, "never");
        running.release();
        never.release();
        seldom.release();

        assertThat(grants).containsExactly("running", "never", "seldom", "often");
    }

    @Test
    void stagesAgainWhileWorkWaits() {
        RateLimitRegistration one = register(1, 2);
        RateLimitRegistration other = register(3, 2);
        stage(one, "one");
        stage(other, "other");
        one.release();
        stage(one, "one");

        stage(other, "other"); // has more work, and its third permit follows the second of the first one
        other.release();

        assertThat(grants).containsExactly("one", "other", "one");
        stage(one, "one");
        one.release();
        assertThat(grants)
                .as("2 against 3: it competes for the permits that it releases")
                .endsWith("one", "one");
    }

    @Test
    void givesHalfThePermitsForPriorityTwo() {
        RateLimitRegistration one = register(1, 2);
        RateLimitRegistration two = register(2, 2);
        RateLimitRegistration running = register(1, 2);
        stage(running, "running");
        stage(one, "one");
        stage(two, "two");
        running.release();
        for (int i = 0; i < 29; i++) {
            boolean first = grants.getLast().equals("one");
            RateLimitRegistration last = first ? one : two;
            stage(last, first ? "one" : "two");
            last.release();
        }

        List<String> taken = grants.subList(1, grants.size());
        assertThat(taken).hasSize(30);
        assertThat(taken).filteredOn("one"::equals).hasSize(20);
        assertThat(taken.subList(0, 15)).filteredOn("one"::equals).hasSize(10);
    }

    @Test
    void aClosedRegistrationUnblocksOthers() {
        RateLimitRegistration running = register(1, 1);
        RateLimitRegistration first = register(1, 2);
        stage(running, "running");
        stage(first, "first");
        stage(register(1, 1), "behind");

        first.close();
        first.close();

        assertThat(grants).containsExactly("running", "behind");
        running.close();
        assertThat(limiter.waiting()).isZero();
        stage(register(1, 1), "waits for what runs");
        assertThat(grants).hasSize(2);
        running.release();
        assertThat(grants).hasSize(3);
    }

    @Test
    void needsNoPermitWhenOff() {
        RateLimitRegistration running = occupyAll();
        FakeInstance free = new FakeInstance(FakeInstance::copy);
        instances.add(free);
        SteppedScheduler scheduler = new SteppedScheduler(model, BatchPlanner.oneByOne(), memory, free);
        submit(scheduler, "a");

        assertThat(scheduler.step()).isTrue();

        assertThat(limiter.waiting()).isZero();
        end(scheduler);
        running.release();
    }

    @Test
    void stagesAnIdleInstanceWhenWorkComes() {
        RateLimitRegistration running = occupyAll();
        SteppedScheduler scheduler = scheduler(1);
        assertThat(scheduler.step()).isFalse();
        assertThat(limiter.waiting()).isZero();

        submit(scheduler, "a");
        assertThat(scheduler.step()).as("it has to wait").isFalse();

        assertThat(limiter.waiting()).isEqualTo(1);
        assertThat(scheduler.queue.waiting()).isEqualTo(1);
        running.release();
        assertThat(scheduler.step()).isTrue();
        end(scheduler);
        assertThat(instances.getFirst().batches()).containsExactly(List.of("a"));
    }

    @Test
    void aRequestCancelledWhileAPermitIsAwaitedIsNotExecuted() {
        RateLimitRegistration running = occupyAll();
        SteppedScheduler scheduler = scheduler(1);
        Cancellation a = submit(scheduler, "a");
        submit(scheduler, "b");
        scheduler.step();

        a.cancel();

        observers.get("a").assertError(ErrorCode.CANCELLED, "request was cancelled");
        running.release();
        end(scheduler);
        assertThat(instances.getFirst().batches()).containsExactly(List.of("b"));
    }

    @Test
    void anUnusedPermitIsNotCounted() {
        RateLimitRegistration running = occupyAll();
        SteppedScheduler scheduler = scheduler(1);
        Cancellation a = submit(scheduler, "a");
        scheduler.step();
        a.cancel();
        running.release();
        RateLimitRegistration next = register(1, 2);
        stage(next, "next");

        assertThat(grants).containsExactly("running");
        assertThat(scheduler.step()).as("uses its permit").isTrue();

        assertThat(grants).containsExactly("running", "next");
        assertThat(instances.getFirst().batches()).isEmpty();
        next.release();
        submit(scheduler, "b");
        end(scheduler);
        assertThat(instances.getFirst().batches()).containsExactly(List.of("b"));
    }

    @Test
    void aTimeoutExpiresWhileAPermitIsAwaited() {
        RateLimitRegistration running = occupyAll();
        QueuePolicy policy = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 10, false, 0);
        SteppedScheduler scheduler = scheduler(
                new BatchingPolicy(true, List.of(), 0, false, new PriorityPolicy(0, 0, policy, Map.of())),
                new FakeInstance(FakeInstance::copy));
        submit(scheduler, "a");
        scheduler.step();

        scheduler.advance(11);

        observers.get("a").assertError(ErrorCode.UNAVAILABLE, "Request timeout expired");
        running.release();
        end(scheduler);
        assertThat(instances.getFirst().batches()).isEmpty();
    }

    @Test
    void whatComesWhileAPermitIsAwaitedJoinsTheBatch() {
        RateLimitRegistration running = occupyAll();
        SteppedScheduler scheduler = scheduler(1);
        submit(scheduler, "a");
        scheduler.step();
        submit(scheduler, "b");

        running.release();
        end(scheduler);

        assertThat(instances.getFirst().batches()).containsExactly(List.of("a", "b"));
    }

    @Test
    void choosesTheInstanceThatRanLeast() {
        SteppedScheduler scheduler = scheduler(2);
        submit(scheduler, "a");
        scheduler.workers.getFirst().step();
        scheduler.workers.getFirst().step();
        RateLimitRegistration running = occupyAll();
        submit(scheduler, "b");
        scheduler.workers.get(0).step();
        submit(scheduler, "c");
        scheduler.workers.get(1).step();
        assertThat(limiter.waiting()).isEqualTo(2);

        running.release();
        scheduler.workers.get(0).step();
        scheduler.workers.get(1).step();

        assertThat(instances.get(0).batches()).containsExactly(List.of("a"));
        assertThat(instances.get(1).batches()).containsExactly(List.of("b", "c"));
        end(scheduler);
    }

    @Test
    void aFailedExecutionGivesItsResourcesBack() {
        SteppedScheduler scheduler = scheduler(BatchingPolicy.NONE, new FakeInstance(batch -> {
            throw new BackendException(ErrorCode.INTERNAL, "broken");
        }));
        submit(scheduler, "a");
        end(scheduler);

        observers.get("a").assertError(ErrorCode.INTERNAL, "broken");
        stage(register(1, 2), "after");
        assertThat(grants).containsExactly("after");
    }

    @Test
    void anErrorOfTheVirtualMachineGivesItsResourcesBack() {
        SteppedScheduler scheduler = scheduler(BatchingPolicy.NONE, new FakeInstance(batch -> {
            throw new StackOverflowError("deep");
        }));
        submit(scheduler, "a");

        end(scheduler);

        stage(register(1, 2), "after");
        assertThat(grants).containsExactly("after");
    }

    @Test
    void aDeferredExecutionKeepsItsResourcesUntilItsEnd() {
        List<DeferredExecution> deferred = new ArrayList<>();
        SteppedScheduler scheduler = scheduler(BatchingPolicy.NONE, new FakeInstance(batch -> {
            FakeInstance.copy(batch);
            deferred.add(batch.defer());
        }));
        submit(scheduler, "a");
        submit(scheduler, "b");
        scheduler.step();
        stage(register(1, 1), "other");
        assertThat(scheduler.step()).as("its own permit is in use").isFalse();
        assertThat(grants).isEmpty();

        deferred.getFirst().complete();

        assertThat(grants).as("it was there for as long, and had less").containsExactly("other");
        assertThat(observers.get("a").hasEnded()).isTrue();
        assertThat(instances.getFirst().batches()).containsExactly(List.of("a"));
        observers.get("b").check();
        scheduler.queue.drain().forEach(ScheduledRequest::abandon);
        end(scheduler);
    }

    @Test
    void anExecutionThatIsDeferredAndEndedAtOnceGivesItsResourcesBackOnce() {
        SteppedScheduler scheduler = scheduler(BatchingPolicy.NONE, new FakeInstance(batch -> {
            FakeInstance.copy(batch);
            batch.defer().complete();
        }));
        submit(scheduler, "a");
        submit(scheduler, "b");
        end(scheduler);

        assertThat(instances.getFirst().batches()).hasSize(2);
        stage(register(1, 2), "after");
        assertThat(grants).containsExactly("after");
    }

    /** Takes all of the resource, as an execution of another model would. */
    private RateLimitRegistration occupyAll() {
        RateLimitRegistration registration = register(1, 2);
        stage(registration, "running");
        assertThat(grants).containsExactly("running");
        return registration;
    }

    private SteppedScheduler scheduler(int count) {
        FakeInstance[] made = new FakeInstance[count];
        for (int i = 0; i < count; i++) {
            made[i] = new FakeInstance(FakeInstance::copy);
        }
        return scheduler(new BatchingPolicy(true, List.of(), 0), made);
    }

    /** Creates a scheduler whose executions take all of the resource. */
    private SteppedScheduler scheduler(BatchingPolicy policy, FakeInstance... made) {
        instances.addAll(List.of(made));
        BatchPlanner planner = policy.dynamic() ? new BatchPlanner(8, List.of(), 0) : BatchPlanner.oneByOne();
        return new SteppedScheduler(
                model,
                planner,
                policy,
                memory,
                ExecutionTraits.DEFAULT,
                limiter,
                new RateProfile(1, List.of(new RateProfile.Resource(R, true, 2))),
                made);
    }

    private Cancellation submit(SteppedScheduler scheduler, String id) {
        RecordingObserver observer = new RecordingObserver();
        observers.put(id, observer);
        return scheduler.submit(
                Requests.to(model, memory)
                        .id(id)
                        .floats("IN", Shape.of(1, 2), 1)
                        .of(1),
                observer);
    }

    /** Runs all executions to their end, and checks them. */
    private void end(SteppedScheduler scheduler) {
        scheduler.drain();
        observers.forEach((id, observer) -> {
            observer.check();
            assertThat(observer.hasEnded()).as("%s is completed", id).isTrue();
            observer.close();
        });
        assertThat(scheduler.inFlight()).isZero();
        instances.forEach(instance -> assertThat(instance.violations()).isEmpty());
    }
}
