package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.Latches;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.Threads;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Warm-ups, and starts of instances, that do not come to their regular end. */
@org.junit.jupiter.api.Timeout(60)
final class EndedWarmupTest {
    private static final String ENDED = "warm-up of model 'm' ended: its instances are closed";

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(4)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    private final Warmup.Sample endless = new Warmup.Sample("s", Integer.MAX_VALUE, () -> List.of(request()));

    @Test
    void failsTheStartThatWaitsForIt() {
        FakeInstance instance = new FakeInstance(FakeInstance::copy);
        ModelScheduler scheduler = start(List.of(endless), instance);
        awaitExecution(instance);

        scheduler.endWarmups();

        assertThatThrownBy(scheduler::awaitWarm).hasMessage(ENDED);
        scheduler.close();
        assertThat(instance.isClosed()).isTrue();
    }

    @Test
    void failsARunningReplacementWhenTheSchedulerIsClosed() {
        FakeInstance old = new FakeInstance(FakeInstance::copy);
        FakeInstance fresh = new FakeInstance(FakeInstance::copy);
        ModelScheduler scheduler = start(List.of(), old);
        CompletableFuture<Throwable> outcome = new CompletableFuture<>();
        Thread.ofPlatform()
                .uncaughtExceptionHandler((thread, e) -> outcome.complete(e))
                .start(() -> replace(scheduler, fresh, old));
        awaitExecution(fresh);

        scheduler.close();

        assertThat(outcome.join()).hasMessage(ENDED);
        assertThat(old.isClosed() && fresh.isClosed()).isTrue();
        assertThat(List.of(old.violations(), fresh.violations())).containsOnly(List.of());
    }

    @Test
    void failsALaterReplacement() {
        FakeInstance old = new FakeInstance(FakeInstance::copy);
        FakeInstance fresh = new FakeInstance(FakeInstance::copy);

        try (ModelScheduler scheduler = start(List.of(), old)) {
            scheduler.endWarmups();

            assertThatThrownBy(() -> replace(scheduler, fresh, old)).hasMessage(ENDED);

            assertThat(fresh.isClosed()).isTrue();
            assertThat(fresh.batches()).isEmpty();
            assertThat(scheduler.isReady()).isTrue();
        }
    }

    @Test
    void leavesNoInterruptToTheNextExecution() throws InterruptedException {
        CompletableFuture<Thread> first = new CompletableFuture<>();
        CountDownLatch interrupted = new CountDownLatch(1);
        List<Boolean> seen = new CopyOnWriteArrayList<>();
        FakeInstance early = new FakeInstance(batch -> {
            first.complete(Thread.currentThread());
            seen.add(Thread.currentThread().isInterrupted());
            FakeInstance.copy(batch);
        });
        FakeInstance late = new FakeInstance(batch -> {
            Latches.await(interrupted);
            FakeInstance.copy(batch);
        });
        Warmup.Sample once = new Warmup.Sample("s", 1, () -> List.of(request()));

        try (ModelScheduler scheduler = start(List.of(once), early, late)) {
            Thread thread = first.join();
            Threads.awaitAsleep(thread); // warm, while the other is not
            thread.interrupt();
            interrupted.countDown();
            scheduler.awaitWarm();
            scheduler.replace(List.of(), List.of(late.scheduled()), List.of());
            run(scheduler);
            Threads.awaitAsleep(thread);
            thread.interrupt(); // such as by a backend that ends a deferred execution late
            run(scheduler);
        }
        assertThat(seen).containsExactly(false, false, false);
    }

    @Test
    void releasesAllMemoryIfARequestCannotBeCreated() {
        ModelSettings shaped = ModelSettings.builder("m", 1)
                .maxBatchSize(4)
                .input(TensorSpec.of("IN", DataType.INT32, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
        AtomicInteger released = new AtomicInteger();
        List<CheckedRequest> requests = new ArrayList<>();
        try (Arena arena = Arena.ofShared()) {
            Tensor tensor = Tensor.of(DataType.INT32, Shape.of(2), arena.allocate(8, 4));
            for (int i = 0; i < 3; i++) {
                requests.add(Requests.to(shaped, memory)
                        .input("IN", tensor)
                        .onRelease(released::incrementAndGet)
                        .of(1));
            }
            List<CheckedRequest> batch = unreadable(requests);
            FakeInstance instance = new FakeInstance(FakeInstance::copy);
            ModelScheduler scheduler = ModelScheduler.start(
                    new ModelPlan(shaped, BatchingPolicy.NONE).with(List.of(new Warmup.Sample("s", 1, () -> batch))),
                    slots(instance),
                    new SchedulerEnvironment(memory, System::nanoTime, timer));

            assertThatThrownBy(scheduler::awaitWarm)
                    .hasMessageStartingWith("warm-up ended by java.lang.IllegalStateException");

            scheduler.close();
            assertThat(released).hasValue(3);
            assertThat(instance.batches()).isEmpty();
            assertThat(instance.isClosed()).isTrue();
        }
    }

    /** Returns a view of requests whose second one cannot be read at first. */
    private static List<CheckedRequest> unreadable(List<CheckedRequest> requests) {
        AtomicBoolean failed = new AtomicBoolean();
        return new AbstractList<>() {
            @Override
            public CheckedRequest get(int index) {
                if (index == 1 && failed.compareAndSet(false, true)) {
                    throw new IllegalStateException("unreadable");
                }
                return requests.get(index);
            }

            @Override
            public int size() {
                return requests.size();
            }
        };
    }

    @Test
    void leavesNoTimeoutIfAnInstanceCannotRegister() {
        AtomicInteger timeouts = new AtomicInteger();
        FakeInstance instance = new FakeInstance(FakeInstance::copy);
        SchedulerEnvironment environment = new SchedulerEnvironment(memory, System::nanoTime, action -> {
            timeouts.incrementAndGet();
            Timeout timeout = timer.newTimeout(action);
            return new Timeout() {
                @Override
                public void scheduleAtLatest(long dueNanos) {
                    timeout.scheduleAtLatest(dueNanos);
                }

                @Override
                public void close() {
                    timeouts.decrementAndGet();
                    timeout.close();
                }
            };
        });

        assertThatThrownBy(() -> ModelScheduler.start(
                        new ModelPlan(model, BatchingPolicy.NONE), List.of(misplaced(instance)), environment))
                .hasMessage("no place");

        assertThat(timeouts).hasValue(0);
        assertThat(instance.isClosed()).isTrue();
    }

    @Test
    void leavesNoHandleIfAnInstanceCannotRegister() throws InterruptedException {
        FakeInstance old = new FakeInstance(FakeInstance::copy);
        FakeInstance good = new FakeInstance(FakeInstance::copy);
        FakeInstance bad = new FakeInstance(FakeInstance::copy);

        try (ModelScheduler scheduler = start(List.of(), old)) {
            List<Instance> added = List.of(slots(good).getFirst(), misplaced(bad));
            assertThatThrownBy(() -> scheduler.replace(added, List.of(), List.of()))
                    .hasMessage("no place");
            scheduler.replace(List.of(), List.of(old.scheduled()), List.of());
            Threads.await("no instance is left", () -> !scheduler.isServing());
            assertThat(run(scheduler).error()).hasMessageContaining("no instance of model 'm' version 1 is left");
        }
        assertThat(List.of(old, good, bad)).allMatch(FakeInstance::isClosed);
    }

    private static Instance misplaced(FakeInstance instance) {
        Instance.ThreadPlacement placement = new Instance.ThreadPlacement() {
            @Override
            public void place() {}

            @Override
            public boolean equals(Object other) {
                throw new IllegalStateException("no place");
            }

            @Override
            public int hashCode() {
                return 0;
            }
        };
        return new Instance("bad", Device.CPU, instance, RateProfile.NONE, placement);
    }

    private ModelScheduler start(List<Warmup.Sample> samples, FakeInstance... instances) {
        return ModelScheduler.start(
                new ModelPlan(model, BatchingPolicy.NONE).with(samples),
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

    private void replace(ModelScheduler scheduler, FakeInstance added, FakeInstance removed) {
        try {
            scheduler.replace(slots(added), List.of(removed.scheduled()), List.of(endless));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private RecordingObserver run(ModelScheduler scheduler) {
        RecordingObserver observer = new RecordingObserver();
        scheduler.submit(request(), observer);
        observer.await().close();
        return observer;
    }

    private CheckedRequest request() {
        return Requests.to(model, memory).floats("IN", Shape.of(1, 2), 1).of(1);
    }

    private static void awaitExecution(FakeInstance instance) {
        Threads.await("an execution", () -> !instance.batches().isEmpty());
    }
}
