package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.Threads;
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
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the executions of instances before their first request. */
@Timeout(60)
final class WarmupTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final ModelSettings model = settings(false);
    private final AtomicInteger given = new AtomicInteger();
    private final AtomicInteger released = new AtomicInteger();

    private static ModelSettings settings(boolean decoupled) {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(4)
                .decoupled(decoupled)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
    }

    @Test
    void executesOneBatchOfSingleRequests() throws InterruptedException {
        List<Integer> sizes = new CopyOnWriteArrayList<>();
        FakeInstance instance = new FakeInstance(batch -> {
            sizes.add(batch.size());
            batch.requests().forEach(request -> sizes.add(request.batchSize()));
            FakeInstance.copy(batch);
        });

        try (ModelScheduler scheduler = start(model, List.of(sample("s", 1, 3)), instance)) {
            scheduler.awaitWarm();
        }

        assertThat(instance.batches()).containsExactly(List.of("s0", "s1", "s2"));
        assertThat(sizes).containsExactly(3, 1, 1, 1);
        assertThat(instance.violations()).isEmpty();
        assertAllReleased(3);
    }

    @Test
    void dropsStates() throws InterruptedException {
        ModelSettings stateful = ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.OLDEST, Duration.ofSeconds(1))
                        .with(StateSpec.of("SUM", "NEXT_SUM", DataType.FP32, Shape.of(1))))
                .build();
        FakeInstance instance = new FakeInstance(batch -> {
            int items = batch.size();
            batch.state("NEXT_SUM").allocate(DataType.FP32, Shape.of(items, 1));
            FakeInstance.copy(batch);
        });

        try (ModelScheduler scheduler = start(stateful, List.of(sample("a", 1, 1), sample("b", 1, 2)), instance)) {
            scheduler.awaitWarm();
        }

        assertThat(instance.batches()).containsExactly(List.of("a0"), List.of("b0", "b1"));
        assertAllReleased(3);
    }

    @Test
    void executesEachSampleAsOftenAsItSaysInTheirOrder() throws InterruptedException {
        FakeInstance instance = new FakeInstance(FakeInstance::copy);

        try (ModelScheduler scheduler = start(model, List.of(sample("a", 2, 1), sample("b", 1, 2)), instance)) {
            scheduler.awaitWarm();
        }

        assertThat(instance.batches()).containsExactly(List.of("a0"), List.of("a0"), List.of("b0", "b1"));
        assertAllReleased(4);
    }

    @Test
    void runsBeforeTheFirstRequest() throws InterruptedException {
        CompletableFuture<ModelScheduler> itself = new CompletableFuture<>();
        RecordingObserver observer = new RecordingObserver();
        AtomicInteger executions = new AtomicInteger();
        FakeInstance instance = new FakeInstance(batch -> {
            if (executions.incrementAndGet() == 1) {
                itself.join().submit(request("request"), observer);
            }
            FakeInstance.copy(batch);
        });

        try (ModelScheduler scheduler = start(model, List.of(sample("s", 3, 1)), instance)) {
            itself.complete(scheduler);
            scheduler.awaitWarm();
            observer.await().close();
        }

        assertThat(instance.batches()).containsExactly(List.of("s0"), List.of("s0"), List.of("s0"), List.of("request"));
    }

    @Test
    void needsAPermit() throws InterruptedException {
        RateLimiter limiter = new RateLimiter(List.of());
        RateProfile profile = new RateProfile(1, List.of(new RateProfile.Resource("R", true, 1)));
        RateLimitRegistration held = limiter.register(Device.CPU, profile);
        held.stage(() -> {});
        FakeInstance instance = new FakeInstance(FakeInstance::copy);
        Instance slot = new Instance("i0", Device.CPU, instance, profile, Instance.ThreadPlacement.ANYWHERE);
        RecordingObserver observer = new RecordingObserver();

        try (ModelScheduler scheduler = ModelScheduler.start(
                plan(model, List.of(sample("s", 2, 1))),
                List.of(slot),
                new SchedulerEnvironment(memory, System::nanoTime, timer).with(limiter))) {
            Threads.await("an instance waits", () -> limiter.waiting() > 0);
            assertThat(instance.batches()).isEmpty();

            held.release();
            scheduler.awaitWarm();

            assertThat(instance.batches()).containsExactly(List.of("s0"), List.of("s0"));
            scheduler.submit(request("request"), observer);
            observer.await().close();
        }
        held.close();
        assertThat(limiter.waiting()).isZero();
    }

    @Test
    void passesTheQueueBy() throws InterruptedException {
        CompletableFuture<ModelScheduler> itself = new CompletableFuture<>();
        List<Integer> waiting = new CopyOnWriteArrayList<>();
        List<RecordingObserver> observers = new ArrayList<>();
        FakeInstance instance = new FakeInstance(batch -> {
            ModelScheduler scheduler = itself.join();
            waiting.add(scheduler.waiting());
            waiting.add(scheduler.inFlight());
            FakeInstance.copy(batch);
        });

        try (ModelScheduler scheduler = start(model, List.of(sample("s", 2, 2)), instance)) {
            for (int i = 0; i < 3; i++) {
                observers.add(new RecordingObserver());
                scheduler.submit(request("r" + i), observers.get(i));
            }
            itself.complete(scheduler);
            observers.forEach(observer -> observer.await().close());
        }

        assertThat(waiting).startsWith(3, 3, 3, 3); // what waits is neither joined nor counted with the samples
        assertThat(instance.batches()).startsWith(List.of("s0", "s1"), List.of("s0", "s1"));
    }

    @Test
    void executesOnTheThreadOfEachInstanceInItsPlace() throws InterruptedException {
        List<String> seen = new CopyOnWriteArrayList<>();
        List<Instance> slots = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            FakeInstance instance = new FakeInstance(batch -> {
                seen.add("execute " + Thread.currentThread().getName());
                FakeInstance.copy(batch);
            });
            Instance.ThreadPlacement placement =
                    () -> seen.add("place " + Thread.currentThread().getName());
            slots.add(new Instance("i" + i, Device.CPU, instance, RateProfile.NONE, placement));
        }

        try (ModelScheduler scheduler = start(model, List.of(sample("s", 1, 1)), slots)) {
            scheduler.awaitWarm();
        }

        assertThat(seen)
                .containsSubsequence("place instance/m/1/i0", "execute instance/m/1/i0")
                .containsSubsequence("place instance/m/1/i1", "execute instance/m/1/i1")
                .hasSize(4);
    }

    @Test
    void waitsForTheTerminalResponseOfADecoupledModel() throws InterruptedException {
        CompletableFuture<ModelScheduler> itself = new CompletableFuture<>();
        CompletableFuture<ResponseSender> sender = new CompletableFuture<>();
        CompletableFuture<Thread> thread = new CompletableFuture<>();
        RecordingObserver observer = new RecordingObserver();
        FakeInstance instance = new FakeInstance(batch -> {
            InferenceRequest request = batch.requests().getFirst();
            if (sender.complete(request.sender())) {
                thread.complete(Thread.currentThread());
                itself.join().submit(request("request"), observer);
            } else {
                request.sender().complete();
            }
        });

        try (ModelScheduler scheduler = start(settings(true), List.of(sample("s", 1, 1)), instance)) {
            itself.complete(scheduler);
            Threads.awaitAsleep(
                    thread.join()); // a thread that did not wait for the response would have executed the request
            assertThat(instance.batches()).hasSize(1);
            assertThat(released).hasValue(0);
            sender.join().complete();
            scheduler.awaitWarm();
            assertThat(released).hasValue(1);
            observer.await();
        }

        assertThat(instance.batches()).containsExactly(List.of("s0"), List.of("request"));
    }

    @Test
    void waitsForADeferredExecution() throws InterruptedException {
        CompletableFuture<DeferredExecution> rest = new CompletableFuture<>();
        CompletableFuture<Thread> thread = new CompletableFuture<>();
        FakeInstance instance = new FakeInstance(batch -> {
            rest.complete(batch.defer());
            FakeInstance.copy(batch);
            thread.complete(Thread.currentThread());
        });

        try (ModelScheduler scheduler = start(model, List.of(sample("s", 1, 1)), instance)) {
            Threads.awaitAsleep(thread.join());
            assertThat(released).hasValue(0);
            rest.join().complete();
            scheduler.awaitWarm();
        }

        assertAllReleased(1);
    }

    @Test
    void collectsTheErrorsOfAllRequestsOfAFailedExecution() {
        FakeInstance instance = new FakeInstance(batch -> {
            for (InferenceRequest request : batch.requests()) {
                if (request.id().equals("b1")) {
                    request.response().put("OUT", request.input("IN").orElseThrow());
                } else {
                    request.fail(new BackendException(ErrorCode.UNAVAILABLE, "no " + request.id()));
                }
            }
        });

        ModelScheduler scheduler = start(model, List.of(sample("b", 5, 3), sample("c", 1, 1)), instance);

        assertThatThrownBy(scheduler::awaitWarm)
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessage("failed to run warmup sample 'b': no b0; no b2; ");
        scheduler.close();
        assertThat(instance.batches()).hasSize(1);
        assertThat(instance.isClosed()).isTrue();
        assertThat(instance.violations()).isEmpty();
        assertAllReleased(3);
    }

    @Test
    void failsWithAFailedResponseOfADecoupledModel() {
        FakeInstance instance = new FakeInstance(batch -> {
            ResponseSender sender = batch.requests().getFirst().sender();
            sender.sendError(new BackendException(ErrorCode.INTERNAL, "not this one"));
            sender.complete();
        });

        ModelScheduler scheduler = start(settings(true), List.of(sample("d", 1, 1)), instance);

        assertThatThrownBy(scheduler::awaitWarm).hasMessage("failed to run warmup sample 'd': not this one; ");
        scheduler.close();
    }

    @Test
    void failsWithAnExecutionThatThrows() {
        FakeInstance instance = new FakeInstance(batch -> {
            throw new BackendException(ErrorCode.INTERNAL, "broken");
        });

        ModelScheduler scheduler = start(model, List.of(sample("s", 1, 2)), instance);

        assertThatThrownBy(scheduler::awaitWarm).hasMessage("failed to run warmup sample 's': broken; broken; ");
        scheduler.close();
        assertThat(instance.isClosed()).isTrue();
        assertAllReleased(2);
    }

    @Test
    void failsWithAnErrorOfTheVirtualMachine() {
        FakeInstance dying = new FakeInstance(batch -> {
            throw new StackOverflowError("deep");
        });
        FakeInstance healthy = new FakeInstance(FakeInstance::copy);

        ModelScheduler scheduler = start(model, List.of(sample("s", 1, 1)), dying, healthy);

        assertThatThrownBy(scheduler::awaitWarm)
                .hasMessage("failed to run warmup sample 's': backend of model 'm' failed unexpectedly:"
                        + " StackOverflowError: deep; ");
        scheduler.close();
        assertThat(dying.isClosed()).isTrue();
        assertThat(healthy.isClosed()).isTrue();
    }

    @Test
    void givesNoInstanceARequestUnlessAllAreWarm() {
        CountDownLatch warm = new CountDownLatch(1);
        FakeInstance healthy = new FakeInstance(batch -> {
            warm.countDown();
            FakeInstance.copy(batch);
        });
        FakeInstance broken = new FakeInstance(batch -> {
            await(warm);
            throw new BackendException(ErrorCode.INTERNAL, "broken");
        });
        RecordingObserver observer = new RecordingObserver();

        ModelScheduler scheduler = start(model, List.of(sample("s", 1, 1)), healthy, broken);
        scheduler.submit(request("request"), observer);

        assertThatThrownBy(scheduler::awaitWarm).hasMessage("failed to run warmup sample 's': broken; ");
        scheduler.close();
        assertThat(observer.await().error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(healthy.batches()).hasSize(1);
    }

    @Test
    void endsEarlyWhenTheSchedulerIsClosed() {
        CountDownLatch executing = new CountDownLatch(1);
        CountDownLatch closing = new CountDownLatch(1);
        CompletableFuture<ModelScheduler> itself = new CompletableFuture<>();
        FakeInstance instance = new FakeInstance(batch -> {
            executing.countDown();
            await(closing);
            Threads.await("its end", () -> !itself.join().isReady());
            FakeInstance.copy(batch);
        });

        ModelScheduler scheduler = start(model, List.of(sample("s", Integer.MAX_VALUE, 1)), instance);
        itself.complete(scheduler);
        await(executing);
        Thread closer = Thread.startVirtualThread(scheduler::close);
        closing.countDown();

        assertThatThrownBy(scheduler::awaitWarm).hasMessage("warm-up of model 'm' ended: its instances are closed");
        join(closer);
        assertThat(instance.isClosed()).isTrue();
        assertThat(instance.batches().size()).isLessThan(1_000_000);
    }

    @Test
    void showsInputsThatTheConfigurationDoesNotKnow() throws InterruptedException {
        ModelSettings optional = ModelSettings.builder("m", 1)
                .maxBatchSize(4)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .input(TensorSpec.of("MAYBE", DataType.FP32, Shape.of(2)).with(TensorSpec.Trait.OPTIONAL))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
        List<Object> seen = new CopyOnWriteArrayList<>();
        FakeInstance instance = new FakeInstance(batch -> {
            seen.add(List.copyOf(batch.inputs()));
            seen.add(batch.gather("START").shape());
            FakeInstance.copy(batch);
        });
        Warmup.Sample sample = new Warmup.Sample(
                "s",
                1,
                () -> List.of(
                        Requests.to(optional, memory)
                                .floats("IN", Shape.of(1, 2), 1)
                                .floats("START", Shape.of(1, 1), 1)
                                .of(1),
                        Requests.to(optional, memory)
                                .floats("IN", Shape.of(1, 2), 1)
                                .floats("START", Shape.of(1, 1), 1)
                                .of(1)));

        try (ModelScheduler scheduler = start(optional, List.of(sample), instance)) {
            scheduler.awaitWarm();
        }

        assertThat(seen).containsExactly(List.of("IN", "START"), Shape.of(2, 1));
        assertThat(instance.violations()).isEmpty();
    }

    private Warmup.Sample sample(String name, int executions, int count) {
        return new Warmup.Sample(
                name,
                executions,
                () -> IntStream.range(0, count)
                        .mapToObj(i -> {
                            given.incrementAndGet();
                            return Requests.to(model, memory)
                                    .id(name + i)
                                    .floats("IN", Shape.of(1, 2), i)
                                    .onRelease(released::incrementAndGet)
                                    .of(1);
                        })
                        .toList());
    }

    private void assertAllReleased(int count) {
        assertThat(given).hasValue(count);
        assertThat(released).hasValue(count);
        assertThat(memory.buffersInUse()).isZero();
    }

    private ModelScheduler start(ModelSettings settings, List<Warmup.Sample> samples, FakeInstance... instances) {
        List<Instance> slots = new ArrayList<>();
        for (FakeInstance instance : instances) {
            slots.add(new Instance("i" + slots.size(), Device.CPU, instance));
        }
        return start(settings, samples, slots);
    }

    private ModelScheduler start(ModelSettings settings, List<Warmup.Sample> samples, List<Instance> slots) {
        return ModelScheduler.start(
                plan(settings, samples), slots, new SchedulerEnvironment(memory, System::nanoTime, timer));
    }

    private static ModelPlan plan(ModelSettings settings, List<Warmup.Sample> samples) {
        return new ModelPlan(settings, new BatchingPolicy(true, List.of(), 0)).with(samples);
    }

    private CheckedRequest request(String id) {
        return Requests.to(model, memory).id(id).floats("IN", Shape.of(1, 2), 1).of(1);
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
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
