package dev.nereid.scheduler.rate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.Latches;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.Threads;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Models that share a resource, with the threads of their instances. */
@Timeout(60)
final class SharedResourceTest {
    private static final RateProfile.Resource SHARED = new RateProfile.Resource("R", true, 1);
    private static final String WARMUP_ENDED = "warm-up of model 'm' ended: its instances are closed";

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final RateLimiter limiter = new RateLimiter(List.of());
    private final List<String> order = new CopyOnWriteArrayList<>();
    private final AtomicInteger running = new AtomicInteger();
    private final AtomicInteger mostAtOnce = new AtomicInteger();
    private final List<FakeInstance> instances = new ArrayList<>();
    private final List<RecordingObserver> observers = new ArrayList<>();

    @AfterEach
    void noMistakes() {
        instances.forEach(instance -> {
            assertThat(instance.violations()).isEmpty();
            assertThat(instance.isClosed()).isTrue();
        });
        observers.forEach(RecordingObserver::check);
    }

    /** All requests are queued before the resource is free, so that the order of permits is determined. */
    @Test
    void priorityTwoGetsHalfThePermitsAndNothingRunsConcurrently() {
        RateLimitRegistration held = limiter.register(Device.CPU, new RateProfile(1, List.of(SHARED)));
        held.stage(() -> {});
        try (ModelScheduler one = start("one", 1, 1);
                ModelScheduler two = start("two", 2, 1)) {
            submit(one, "one", 20);
            awaitWaiting(1);
            submit(two, "two", 20);
            awaitWaiting(2);

            held.release();

            observers.forEach(RecordingObserver::await);
            observers.forEach(RecordingObserver::close);
        }
        held.close();
        assertThat(mostAtOnce).hasValue(1);
        assertThat(order).hasSize(40);
        assertThat(order.subList(0, 15)).filteredOn("one"::equals).hasSize(10);
        assertThat(order.subList(0, 30)).filteredOn("one"::equals).hasSize(20);
    }

    @Test
    void nothingRunsAtTheSameTimeWhateverComesWhen() throws InterruptedException {
        try (ModelScheduler one = start("one", 1, 2);
                ModelScheduler two = start("two", 2, 2)) {
            List<Thread> clients = new ArrayList<>();
            List<RecordingObserver> submitted = new CopyOnWriteArrayList<>();
            for (ModelScheduler scheduler : List.of(one, two, one, two)) {
                clients.add(Thread.ofPlatform().start(() -> {
                    for (int i = 0; i < 300; i++) {
                        RecordingObserver observer = new RecordingObserver();
                        submitted.add(observer);
                        scheduler.submit(request(scheduler == one ? "one" : "two"), observer);
                        if (i % 7 == 0) {
                            observer.await();
                        }
                    }
                }));
            }
            for (Thread client : clients) {
                client.join();
            }
            submitted.forEach(RecordingObserver::await);
            submitted.forEach(RecordingObserver::close);
            observers.addAll(submitted);
        }
        assertThat(order).hasSize(1200);
        assertThat(mostAtOnce).hasValue(1);
        assertThat(limiter.waiting()).isZero();
    }

    @Test
    void aModelThatIsGoneNeedsNothing() {
        start("large", new RateProfile(1, List.of(new RateProfile.Resource("R", true, 5))), 1)
                .close();
        ModelScheduler small = start("small", 1, 2);
        RateLimitRegistration held = limiter.register(Device.CPU, new RateProfile(1, List.of(SHARED)));
        held.stage(() -> {});

        submit(small, "small", 1);
        awaitWaiting(1); // there is one of the resource now, not five

        held.release();
        observers.getFirst().await().close();
        held.close();
        small.close();
    }

    @Test
    void aRetiredInstanceWaitsForNoPermit() throws InterruptedException {
        RateLimitRegistration held = limiter.register(Device.CPU, new RateProfile(1, List.of(SHARED)));
        held.stage(() -> {});
        FakeInstance fresh = new FakeInstance(FakeInstance::copy);
        instances.add(fresh);

        try (ModelScheduler scheduler = start("m", 1, 1)) {
            FakeInstance old = instances.getLast();
            submit(scheduler, "m", 1);
            awaitWaiting(1);

            scheduler.replace(List.of(slot("fresh", fresh, RateProfile.NONE)), List.of(old.scheduled()), List.of());

            observers.getFirst().await().close();
            assertThat(fresh.batches()).hasSize(1);
            assertThat(old.batches()).isEmpty();
        }
        held.release();
        held.close();
        assertThat(limiter.waiting()).isZero();
    }

    @Test
    void anEndedWarmupWaitsForNoPermit() {
        RateLimitRegistration held = limiter.register(Device.CPU, new RateProfile(1, List.of(SHARED)));
        held.stage(() -> {});
        FakeInstance instance = new FakeInstance(FakeInstance::copy);
        instances.add(instance);
        ModelScheduler scheduler = startWarm(instance);
        awaitWaiting(1);

        scheduler.endWarmups();

        assertThatThrownBy(scheduler::awaitWarm).hasMessage(WARMUP_ENDED);
        scheduler.close(); // while the other one still holds its permit
        assertThat(instance.batches()).isEmpty();
        assertThat(limiter.waiting()).isZero();
        held.release();
        held.close();
    }

    /** Its registration is closed before the instances that are warmed up with it are done. */
    @Test
    void anEndedWarmupLeavesItsPlaceAtOnce() {
        CountDownLatch going = new CountDownLatch(1);
        FakeInstance.Execution execution = batch -> {
            Latches.await(going);
            FakeInstance.copy(batch);
        };
        FakeInstance one = new FakeInstance(execution);
        FakeInstance other = new FakeInstance(execution);
        instances.addAll(List.of(one, other));
        ModelScheduler scheduler = startWarm(one, other);
        awaitWaiting(1); // the one that was not granted the first permit

        scheduler.endWarmups();

        Threads.await("no instance waits", () -> limiter.waiting() == 0);
        going.countDown();
        assertThatThrownBy(scheduler::awaitWarm).hasMessage(WARMUP_ENDED);
        scheduler.close();
        assertThat(one.batches().size() + other.batches().size()).isEqualTo(1);
    }

    @Test
    void aModelThatCouldNeverRunIsNotStarted() {
        RateLimiter limited = new RateLimiter(List.of(new RateLimiter.ResourceLimit("R", 1, OptionalInt.empty())));
        FakeInstance first = new FakeInstance(FakeInstance::copy);
        FakeInstance second = new FakeInstance(FakeInstance::copy);
        instances.addAll(List.of(first, second));
        RateProfile large = new RateProfile(1, List.of(new RateProfile.Resource("R", true, 2)));

        assertThatThrownBy(() -> ModelScheduler.start(
                        new ModelPlan(model("m"), BatchingPolicy.NONE),
                        List.of(slot("i0", first, new RateProfile(1, List.of(SHARED))), slot("i1", second, large)),
                        new SchedulerEnvironment(memory, System::nanoTime, timer).with(limited)))
                .isInstanceOf(InferenceException.class)
                .hasMessageStartingWith("Resource count for \"R\" is limited to 1");

        // The first instance is not known any more: its name is free for the other kind.
        limited.register(Device.CPU, new RateProfile(1, List.of(new RateProfile.Resource("R", false, 1))))
                .close();
    }

    private static Instance slot(String name, FakeInstance instance, RateProfile rate) {
        return instance.as(name, Device.CPU, rate);
    }

    private ModelScheduler start(String name, int priority, int count) {
        return start(name, new RateProfile(priority, List.of(SHARED)), count);
    }

    private ModelScheduler start(String name, RateProfile rate, int count) {
        List<Instance> slots = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            FakeInstance instance = new FakeInstance(batch -> {
                mostAtOnce.accumulateAndGet(running.incrementAndGet(), Math::max);
                order.add(name);
                FakeInstance.copy(batch);
                Thread.onSpinWait();
                running.decrementAndGet();
            });
            instances.add(instance);
            slots.add(slot("i" + i, instance, rate));
        }
        return ModelScheduler.start(
                new ModelPlan(model(name), BatchingPolicy.NONE),
                slots,
                new SchedulerEnvironment(memory, System::nanoTime, timer).with(limiter));
    }

    /** Starts a model whose instances are warmed up for as long as they may. */
    private ModelScheduler startWarm(FakeInstance... warm) {
        List<Instance> slots = new ArrayList<>();
        for (FakeInstance instance : warm) {
            slots.add(slot("i" + slots.size(), instance, new RateProfile(1, List.of(SHARED))));
        }
        Warmup.Sample endless = new Warmup.Sample("s", Integer.MAX_VALUE, () -> List.of(request("m")));
        return ModelScheduler.start(
                new ModelPlan(model("m"), BatchingPolicy.NONE).with(List.of(endless)),
                slots,
                new SchedulerEnvironment(memory, System::nanoTime, timer).with(limiter));
    }

    private static ModelSettings model(String name) {
        return ModelSettings.builder(name, 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
    }

    private CheckedRequest request(String model) {
        return Requests.to(model(model), memory).floats("IN", Shape.of(1, 2), 1).of(1);
    }

    private void submit(ModelScheduler scheduler, String model, int count) {
        for (int i = 0; i < count; i++) {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            scheduler.submit(request(model), observer);
        }
    }

    /** Waits until a number of instances wait for a permit. */
    private void awaitWaiting(int count) {
        Threads.await("instances wait", () -> limiter.waiting() >= count);
    }
}
