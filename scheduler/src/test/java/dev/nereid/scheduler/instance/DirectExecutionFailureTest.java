package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.EarlyThreads;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.Latches;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.Threads;
import dev.nereid.scheduler.TriedScheduler;
import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.scheduler.rate.RateLimitRegistration;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Failures during direct execution, such as the end of the stack of a plugin that submits. */
@Timeout(60)
final class DirectExecutionFailureTest {
    private static final BatchingPolicy BY_TWOS =
            new BatchingPolicy(true, List.of(2), Duration.ofHours(1).toNanos());

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .build();
    private final StackOverflowError overflow = new StackOverflowError("for a test");
    private final FakeClock clock = new FakeClock();

    /** Which reading of the clock fails, counted from now; below 1 for none. */
    private final AtomicInteger failing = new AtomicInteger();

    private final List<FakeInstance> instances = new ArrayList<>();
    private final List<RecordingObserver> observers = new ArrayList<>();
    private FakeInstance.Execution execution = FakeInstance::copy;

    @AfterEach
    void everythingWasGivenBack() {
        for (FakeInstance instance : instances) {
            assertThat(instance.violations()).isEmpty();
            assertThat(instance.isClosed()).isTrue();
        }
        observers.forEach(RecordingObserver::check);
    }

    /** While no instance is there for a waiting request, another one arrives, and their comparison fails. */
    @Test
    void throwsToTheSubmitterAndCompletesOthers() throws InterruptedException {
        Door door = new Door();
        try (ModelScheduler scheduler = start(BY_TWOS, 3, door)) {
            AtomicBoolean faulty = new AtomicBoolean();
            RecordingObserver waiting = submit(scheduler, withInputs(request("waiting"), faulty));
            FakeInstance leader = awaitLeader();
            scheduler.replace(List.of(), List.of(leader.scheduled()), List.of());
            Latches.await(door.entered); // it waits for no batch any more, and no other instance does yet
            faulty.set(true);

            RecordingObserver observer = submit(scheduler, request("second"));

            assertThat(faulty).as("failed once").isFalse();
            observer.assertError(ErrorCode.INTERNAL, "internal error: " + overflow);
            assertThat(waiting.isSilent()).isTrue();
            door.open.countDown();
            submit(scheduler, request("third")).await().response();
            waiting.await().response();
            observers.forEach(RecordingObserver::close);
        }
        assertThat(instances).flatExtracting(FakeInstance::batches).containsExactly(List.of("waiting", "third"));
    }

    @Test
    void completesTheRequestIfTheInstanceCannotBeReleased() {
        execution = batch -> {
            FakeInstance.copy(batch);
            failing.set(2); // one returns when the execution ended
        };
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, 2, ExecutionLimiter.OFF)) {
            submit(scheduler, request("first")).response();

            execution = FakeInstance::copy;
            submit(scheduler, request("second")).await().response();
            assertThat(scheduler.isReady()).isTrue();
            observers.forEach(RecordingObserver::close);
        }
        assertThat(instances)
                .flatExtracting(FakeInstance::batches)
                .containsExactlyInAnyOrder(List.of("first"), List.of("second"));
    }

    @Test
    void aFailedOfferStartsNoDirectExecution() {
        try (ModelScheduler scheduler = start(BatchingPolicy.NONE, 1, ExecutionLimiter.OFF)) {
            failing.set(2); // the first returns when it is queued

            submit(scheduler, request("first")).assertError(ErrorCode.INTERNAL, "internal error: " + overflow);

            assertThat(scheduler.waiting()).isZero();
            submit(scheduler, request("second")).response();
            assertThat(scheduler.isReady()).isTrue();
            observers.forEach(RecordingObserver::close);
        }
        assertThat(instances.getFirst().batches()).containsExactly(List.of("second"));
    }

    /** Limits nothing; the first instance that ends waits in it, before it leaves the queue. */
    private static final class Door implements ExecutionLimiter {
        private final CountDownLatch entered = new CountDownLatch(1);
        private final CountDownLatch open = new CountDownLatch(1);
        private final AtomicBoolean passed = new AtomicBoolean();

        @Override
        public boolean isLimiting() {
            return false;
        }

        @Override
        public RateLimitRegistration register(Device device, RateProfile profile) {
            return new RateLimitRegistration() {
                @Override
                public boolean isLimited() {
                    return false;
                }

                @Override
                public long load() {
                    return 0;
                }

                @Override
                public void stage(Runnable granted) {
                    granted.run();
                }

                @Override
                public void release() {}

                @Override
                public void releaseUnused() {}

                @Override
                public void close() {
                    if (passed.compareAndSet(false, true)) {
                        entered.countDown();
                        Latches.await(open);
                    }
                }
            };
        }
    }

    /** Starts a scheduler with some instances, all of which are idle. */
    private ModelScheduler start(BatchingPolicy policy, int count, ExecutionLimiter limiter) {
        List<Instance> slots = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            FakeInstance instance = new FakeInstance(batch -> execution.execute(batch));
            instances.add(instance);
            slots.add(SteppedScheduler.slot("i" + i, instance, RateProfile.NONE));
        }
        ModelScheduler scheduler = TriedScheduler.start(
                new ModelPlan(model, policy)
                        .with(new ExecutionTraits("fake", false, true))
                        .with(EarlyThreads.WARMUP),
                slots,
                new SchedulerEnvironment(memory, this::now, new TimeoutQueue(() -> {})).with(limiter));
        for (int i = 0; i < count; i++) {
            Threads.awaitIdle(thread(i));
        }
        return scheduler;
    }

    private long now() {
        if (failing.getAndDecrement() == 1) {
            throw overflow;
        }
        return clock.getAsLong();
    }

    private static Thread thread(int instance) {
        return Threads.named("instance/m/1/i" + instance);
    }

    /** Waits until an instance waits for a time, and returns it. */
    private FakeInstance awaitLeader() {
        Threads.await("a leader", () -> leader().isPresent());
        return instances.get(leader().orElseThrow());
    }

    private OptionalInt leader() {
        return IntStream.range(0, instances.size())
                .filter(i -> thread(i).getState() == Thread.State.TIMED_WAITING)
                .findFirst();
    }

    private CheckedRequest request(String id) {
        return Requests.to(model, memory).id(id).floats("IN", Shape.of(1, 2), 1).of(1);
    }

    /** Returns a request whose inputs fail once when they are read, if {@code faulty} is set. */
    private CheckedRequest withInputs(CheckedRequest request, AtomicBoolean faulty) {
        NamedTensor[] tensors = request.inputs().toArray(NamedTensor[]::new);
        return request.withInputs(new RequestInputs(tensors, request.batchSize(), request::releaseInputs) {
            @Override
            public int size() {
                if (faulty.compareAndSet(true, false)) {
                    throw overflow;
                }
                return super.size();
            }
        });
    }

    private RecordingObserver submit(ModelScheduler scheduler, CheckedRequest request) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(request, observer);
        return observer;
    }
}
