package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.Threads;
import dev.nereid.scheduler.TriedScheduler;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Instances that come and go while a model serves. */
@Timeout(120)
@Tag("slow")
final class ReplacedInstancesTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    @Test
    void serveOnTheNewOnesAndCloseTheOldOnes() throws InterruptedException {
        FakeInstance kept = new FakeInstance(FakeInstance::copy);
        FakeInstance old = new FakeInstance(FakeInstance::copy);
        FakeInstance fresh = new FakeInstance(FakeInstance::copy);

        try (ModelScheduler scheduler = start(ExecutionTraits.DEFAULT, kept, old)) {
            scheduler.replace(slots(fresh), List.of(old.scheduled()), List.of());

            awaitClosed(old);
            assertThat(kept.isClosed() || fresh.isClosed()).isFalse();
            assertThat(scheduler.isReady()).isTrue();
            kept.readiness(() -> CompletableFuture.failedStage(new IllegalStateException("for a test")));
            assertThat(scheduler.isReady()).as("the other one is").isTrue();
            fresh.readiness(() -> CompletableFuture.failedStage(new IllegalStateException("for a test")));
            assertThat(scheduler.isReady()).isFalse();
            kept.readiness(() -> CompletableFuture.completedStage(null));
            fresh.readiness(() -> CompletableFuture.completedStage(null));

            scheduler.replace(List.of(), List.of(kept.scheduled()), List.of());

            awaitClosed(kept);
            RecordingObserver observer = run(scheduler);
            observer.response();
            observer.close();
            assertThat(fresh.batches()).hasSize(1);
        }
        assertThat(fresh.isClosed()).isTrue();
        assertThat(List.of(kept.violations(), old.violations(), fresh.violations()))
                .containsOnly(List.of());
    }

    @Test
    void areAwaitedUntilTheyAreClosed() throws Exception {
        CountDownLatch busy = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        FakeInstance old = new FakeInstance(batch -> {
            busy.countDown();
            await(go);
            FakeInstance.copy(batch);
        });

        try (ModelScheduler scheduler = start(ExecutionTraits.DEFAULT, old)) {
            RecordingObserver observer = new RecordingObserver();
            scheduler.submit(request(), observer);
            await(busy);
            scheduler.replace(slots(new FakeInstance(FakeInstance::copy)), List.of(old.scheduled()), List.of());
            assertThat(scheduler.awaitClosed(List.of(old.scheduled()), 1)).isFalse();
            CompletableFuture<Boolean> awaited = new CompletableFuture<>();
            Thread waiting = Thread.ofPlatform()
                    .start(() -> awaited.complete(
                            scheduler.awaitClosed(List.of(old.scheduled()), Long.MAX_VALUE) && old.isClosed()));
            Threads.await("asleep", () -> waiting.getState() == Thread.State.TIMED_WAITING);

            go.countDown();
            observer.await().close();

            assertThat(awaited.get()).isTrue();
            assertThat(scheduler.awaitClosed(List.of(old.scheduled()), 0)).isTrue();
        }
    }

    @Test
    void areNotAwaitedByAServerThatStops() throws Exception {
        CountDownLatch busy = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        FakeInstance old = new FakeInstance(batch -> {
            busy.countDown();
            await(go);
            FakeInstance.copy(batch);
        });

        try (ModelScheduler scheduler = start(ExecutionTraits.DEFAULT, old)) {
            RecordingObserver observer = new RecordingObserver();
            scheduler.submit(request(), observer);
            await(busy);
            scheduler.replace(slots(new FakeInstance(FakeInstance::copy)), List.of(old.scheduled()), List.of());
            CompletableFuture<Boolean> awaited = new CompletableFuture<>();
            Thread waiting = Thread.ofPlatform()
                    .start(() -> awaited.complete(scheduler.awaitClosed(List.of(old.scheduled()), Long.MAX_VALUE)));
            Threads.await("asleep", () -> waiting.getState() == Thread.State.TIMED_WAITING);

            scheduler.endWarmups();

            assertThat(awaited.get()).isFalse();
            go.countDown();
            observer.await().close();
        }
    }

    @Test
    void endWhatTheyHaveWhileTheOthersGoOn() throws InterruptedException {
        CountDownLatch busy = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        FakeInstance old = new FakeInstance(batch -> {
            busy.countDown();
            await(go);
            FakeInstance.copy(batch);
        });
        FakeInstance fresh = new FakeInstance(FakeInstance::copy);

        try (ModelScheduler scheduler = start(ExecutionTraits.DEFAULT, old)) {
            RecordingObserver first = new RecordingObserver();
            scheduler.submit(request(), first);
            await(busy);
            replace(scheduler, slots(fresh), List.of(old.scheduled())); // does not wait for those that end
            RecordingObserver other = run(scheduler); // by the new one: the old one is busy
            assertThat(fresh.batches()).hasSize(1);
            assertThat(old.isClosed()).isFalse();
            go.countDown();
            first.await();
            RecordingObserver third = run(scheduler);
            assertThat(old.isClosed()).isFalse(); // its response is still read
            replace(scheduler, slots(new FakeInstance(FakeInstance::copy)), List.of()); // nor does a later one
            assertThat(old.isClosed()).isFalse();
            first.close();
            awaitClosed(old); // although other requests are in flight all the time
            assertThat(scheduler.inFlight()).isEqualTo(2);
            other.close();
            third.close();
        }
        assertThat(old.batches()).hasSize(1);
        assertThat(old.violations()).isEmpty();
    }

    @Test
    void areClosedAfterTheirLastDeferredExecution() throws InterruptedException {
        BlockingQueue<DeferredExecution> deferred = new LinkedBlockingQueue<>();
        List<String> events = new CopyOnWriteArrayList<>();
        FakeInstance inner = new FakeInstance(batch -> {
            FakeInstance.copy(batch);
            deferred.add(batch.defer());
        });
        ModelInstance old = new ModelInstance() {
            @Override
            public void execute(Batch batch) {
                inner.execute(batch);
            }

            @Override
            public void close() {
                events.add("close on " + Thread.currentThread().getName());
            }
        };
        Instance replaced = new Instance("old", Device.CPU, old);
        FakeInstance fresh = new FakeInstance(FakeInstance::copy);

        try (ModelScheduler scheduler = TriedScheduler.start(
                new ModelPlan(model, BatchingPolicy.NONE),
                List.of(replaced),
                new SchedulerEnvironment(memory, System::nanoTime, timer))) {
            RecordingObserver first = new RecordingObserver();
            scheduler.submit(request(), first);
            DeferredExecution rest = deferred.take();
            Thread own = Threads.named("instance/m/1/old");
            replace(scheduler, slots(fresh), List.of(replaced));
            run(scheduler).close();
            assertThat(fresh.batches()).hasSize(1);
            assertThat(own.isAlive()).isTrue();
            assertThat(first.isSilent()).isTrue();
            events.add("finish");
            rest.complete();
            first.await().close();
            own.join();
        }
        assertThat(events).containsExactly("finish", "close on instance/m/1/old");
    }

    @Test
    void stayIfANewOneFailsItsWarmup() throws InterruptedException {
        FakeInstance old = new FakeInstance(FakeInstance::copy);
        FakeInstance good = new FakeInstance(FakeInstance::copy);
        FakeInstance bad = new FakeInstance(batch -> {
            throw new BackendException(ErrorCode.INTERNAL, "broken");
        });
        Warmup.Sample sample = new Warmup.Sample("s", 1, () -> List.of(request()));

        try (ModelScheduler scheduler = start(ExecutionTraits.DEFAULT, old)) {
            assertThatThrownBy(() -> scheduler.replace(slots(good, bad), List.of(old.scheduled()), List.of(sample)))
                    .isInstanceOf(InferenceException.class)
                    .hasMessage("failed to run warmup sample 's': broken; ");

            assertThat(good.isClosed() && bad.isClosed()).isTrue();
            assertThat(old.isClosed()).isFalse();
            assertThat(scheduler.isReady()).isTrue();
            RecordingObserver observer = run(scheduler);
            observer.response();
            observer.close();
            assertThat(old.batches()).hasSize(1);
        }
        assertThat(good.violations()).isEmpty();
        assertThat(bad.batches()).hasSize(1);
    }

    @Test
    void areClosedWhenTheSchedulerWasClosedBefore() {
        FakeInstance old = new FakeInstance(FakeInstance::copy);
        FakeInstance late = new FakeInstance(FakeInstance::copy);
        ModelScheduler scheduler = start(ExecutionTraits.DEFAULT, old);
        scheduler.close();

        assertThatThrownBy(() -> scheduler.replace(slots(late), List.of(old.scheduled()), List.of()))
                .hasMessage("warm-up of model 'm' ended: its instances are closed");

        assertThat(late.isClosed()).isTrue();
        assertThat(late.violations()).isEmpty();
        assertThat(old.violations()).isEmpty();
    }

    @Test
    void doNotComeIfTheThreadIsInterrupted() throws InterruptedException {
        FakeInstance old = new FakeInstance(FakeInstance::copy);
        FakeInstance fresh = new FakeInstance(FakeInstance::copy);

        try (ModelScheduler scheduler = start(ExecutionTraits.DEFAULT, old)) {
            Thread.currentThread().interrupt();
            assertThatThrownBy(() -> scheduler.replace(slots(fresh), List.of(old.scheduled()), List.of()))
                    .isInstanceOf(InterruptedException.class);

            assertThat(fresh.isClosed()).isTrue();
            assertThat(old.isClosed()).isFalse();
            run(scheduler).close();
            assertThat(old.batches()).hasSize(1);
            assertThat(scheduler.isReady()).isTrue();
        }
        assertThat(fresh.violations()).isEmpty();
    }

    @Test
    void areWaitedForByTheEndOfTheModel() throws InterruptedException {
        FakeInstance old = new FakeInstance(FakeInstance::copy);
        FakeInstance fresh = new FakeInstance(FakeInstance::copy);
        ModelScheduler scheduler = start(ExecutionTraits.DEFAULT, old);
        RecordingObserver read = run(scheduler);
        scheduler.replace(slots(fresh), List.of(old.scheduled()), List.of());
        Thread end = Thread.ofPlatform().start(scheduler::close);
        while (end.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        assertThat(old.isClosed()).isFalse();

        read.close();
        join(end);

        assertThat(old.isClosed() && fresh.isClosed()).isTrue();
        assertThat(old.violations()).isEmpty();
    }

    /**
     * Traffic that keeps the count of requests in flight above 0 all the time, while a random plan exchanges instances.
     */
    @ParameterizedTest
    @CsvSource({"false, 0", "true, 0", "false, 100000", "true, 100000"})
    void neverLeaveAGap(boolean shortExecutions, long delayNanos) throws InterruptedException {
        List<FakeInstance> serving = new ArrayList<>();
        List<FakeInstance> all = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            serving.add(new FakeInstance(FakeInstance::copy));
        }
        all.addAll(serving);
        ModelScheduler scheduler = TriedScheduler.start(
                new ModelPlan(model, new BatchingPolicy(true, List.of(4), delayNanos))
                        .with(new ExecutionTraits("copy", false, shortExecutions)),
                slots(serving.toArray(FakeInstance[]::new)),
                new SchedulerEnvironment(memory, System::nanoTime, timer));
        AtomicBoolean ended = new AtomicBoolean();
        LongAdder responses = new LongAdder();
        LongAdder wrong = new LongAdder();
        Semaphore window = new Semaphore(16);
        List<Thread> clients = new ArrayList<>();
        LongAdder sent = new LongAdder();
        for (int i = 0; i < 3; i++) {
            clients.add(Thread.ofPlatform().start(() -> {
                while (!ended.get()) {
                    window.acquireUninterruptibly();
                    sent.increment();
                    scheduler.submit(request(), new Counting(responses, wrong, window));
                }
            }));
        }

        Random random = new Random(7);
        for (int round = 0; round < 60; round++) {
            List<FakeInstance> removed = new ArrayList<>();
            List<FakeInstance> added = new ArrayList<>();
            for (int i = 1 + random.nextInt(3); i > 0; i--) {
                added.add(new FakeInstance(FakeInstance::copy));
            }
            for (int i = random.nextInt(serving.size() + 1); i > 0; i--) {
                removed.add(serving.remove(random.nextInt(serving.size())));
            }
            scheduler.replace(
                    slots(added.toArray(FakeInstance[]::new)),
                    removed.stream().map(FakeInstance::scheduled).toList(),
                    List.of());
            removed.forEach(ReplacedInstancesTest::awaitClosed); // although other requests are in flight
            assertThat(added).noneMatch(FakeInstance::isClosed);
            serving.addAll(added);
            all.addAll(added);
            awaitMore(responses); // the next exchange meets traffic, however fast exchanges are
        }
        ended.set(true);
        for (Thread client : clients) {
            client.join();
        }
        scheduler.close();

        assertThat(wrong.sum()).isZero();
        assertThat(responses.sum()).isEqualTo(sent.sum()).isGreaterThan(100);
        assertThat(all).allMatch(FakeInstance::isClosed);
        assertThat(all).flatExtracting(FakeInstance::violations).isEmpty();
        assertThat(scheduler.inFlight()).isZero();
    }

    /** Counts completions, and those without a response. */
    private record Counting(LongAdder responses, LongAdder wrong, Semaphore window) implements ResponseObserver {
        @Override
        public void onResponse(InferResponse response) {
            response.close();
            responses.increment();
            window.release();
        }

        @Override
        public void onCompleted() {
            wrong.increment();
            window.release();
        }

        @Override
        public void onError(InferenceException error) {
            wrong.increment();
            window.release();
        }
    }

    private ModelScheduler start(ExecutionTraits traits, FakeInstance... instances) {
        return TriedScheduler.start(
                new ModelPlan(model, BatchingPolicy.NONE).with(traits),
                slots(instances),
                new SchedulerEnvironment(memory, System::nanoTime, timer));
    }

    private static List<Instance> slots(FakeInstance... instances) {
        List<Instance> slots = new ArrayList<>();
        for (FakeInstance instance : instances) {
            slots.add(instance.as("i" + slots.size(), Device.CPU, RateProfile.NONE));
        }
        return slots;
    }

    private RecordingObserver run(ModelScheduler scheduler) {
        RecordingObserver observer = new RecordingObserver();
        scheduler.submit(request(), observer);
        return observer.await();
    }

    private CheckedRequest request() {
        return Requests.to(model, memory).floats("IN", Shape.of(1, 2), 1).of(1);
    }

    private static void replace(ModelScheduler scheduler, List<Instance> added, List<Instance> removed) {
        try {
            scheduler.replace(added, removed, List.of());
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void awaitMore(LongAdder responses) {
        long before = responses.sum();
        while (responses.sum() < before + 2) {
            Thread.onSpinWait();
        }
    }

    private static void awaitClosed(FakeInstance instance) {
        while (!instance.isClosed()) {
            Thread.onSpinWait();
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
