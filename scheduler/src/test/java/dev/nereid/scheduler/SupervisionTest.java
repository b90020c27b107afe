package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.scheduler.time.Watchdog;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Fatal errors and overdue executions of a model. */
@Timeout(60)
final class SupervisionTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeClock clock = new FakeClock();
    private final TimeoutQueue timeouts = new TimeoutQueue(() -> {});
    private final Watchdog watchdog = new Watchdog(timeouts, clock);
    private final List<OutOfMemoryError> fatal = new CopyOnWriteArrayList<>();
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .build();

    @ParameterizedTest
    @ValueSource(
            strings = {
                "Java heap space",
                "Java heap space: failed reallocation of scalar replaced objects",
                "GC overhead limit exceeded",
                "Metaspace",
                "Compressed class space",
                "unable to create native thread: possibly out of memory or process/resource limits reached"
            })
    void exhaustedHeapMetaspaceAndThreadsAreFatal(String message) {
        OutOfMemoryError error = new OutOfMemoryError(message);

        assertThat(failWith(new IllegalStateException("around", error))).isTrue();

        assertThat(fatal).containsExactly(error);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "Cannot reserve 4096 bytes of direct buffer memory (allocated: 1, limit: 2)",
                "Map failed",
                "Out of native memory",
                "Requested array size exceeds VM limit",
                "Required length exceeds implementation limit",
                "for a test"
            })
    void refusedDirectNativeAndMappedMemoryAndArrayLimitsAreNotFatal(String message) {
        assertThat(failWith(new OutOfMemoryError(message))).isTrue();

        assertThat(fatal).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(classes = {StackOverflowError.class, InternalError.class, UnknownError.class, OutOfMemoryError.class})
    void otherErrorsOfTheVirtualMachineFailTheirExecution(Class<? extends Error> kind) throws Exception {
        assertThat(failWith(kind.getConstructor().newInstance())).isTrue();

        assertThat(fatal).isEmpty();
    }

    /** Fails executions, on instance threads and directly; returns whether the instance executes the next one. */
    private boolean failWith(Throwable thrown) {
        List<FakeInstance.Execution> executions = new ArrayList<>(List.of(
                batch -> {
                    SupervisionTest.<RuntimeException>sneak(thrown);
                },
                FakeInstance::copy));
        FakeInstance instance =
                new FakeInstance(batch -> executions.removeFirst().execute(batch));
        boolean ready;
        try (ModelScheduler scheduler = start(List.of(), instance)) {
            RecordingObserver failed = submit(scheduler, "a").await();
            assertThat(failed.error().code()).isEqualTo(ErrorCode.INTERNAL);
            submit(scheduler, "b").await().close();
            ready = scheduler.isReady();
        }
        return ready && instance.isClosed();
    }

    @Test
    void anOverdueExecutionIsReportedOnceAndTheModelIsReadyWhileAnotherInstanceIsFree() {
        Gate first = new Gate();
        Gate second = new Gate();
        try (ModelScheduler scheduler = start(List.of(), first.instance, second.instance)) {
            RecordingObserver one = submit(scheduler, "one");
            await(first, second);
            look(LIMIT.minusSeconds(1));
            assertThat(scheduler.overdue()).isZero();

            look(Duration.ofSeconds(2));
            look(Duration.ofSeconds(2));

            assertThat(scheduler.overdue()).isEqualTo(1);
            assertThat(scheduler.overdueTotal()).isEqualTo(1);
            assertThat(scheduler.isReady()).isTrue();
            assertThat(scheduler.problems())
                    .startsWith("instances whose executions take longer than 30 s: i")
                    .doesNotContain(",");

            RecordingObserver other = submit(scheduler, "two");
            Latches.await(first.entered);
            Latches.await(second.entered);
            look(LIMIT.plusSeconds(1));

            assertThat(scheduler.overdueTotal()).isEqualTo(2);
            assertThat(scheduler.isReady()).isFalse();
            assertThat(scheduler.isServing()).isTrue();

            first.open.countDown();
            second.open.countDown();
            one.await().close();
            other.await().close();
            Threads.await("none overdue", () -> scheduler.overdue() == 0);
            assertThat(scheduler.isReady()).isTrue();
            assertThat(scheduler.problems()).isEmpty();
            assertThat(scheduler.overdueTotal()).isEqualTo(2);
        }
        assertThat(timeouts.runExpired(clock.getAsLong() + TimeUnit.DAYS.toNanos(1)))
                .isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void anOverdueDeferredExecutionIsReportedOnce() {
        List<DeferredExecution> executions = new CopyOnWriteArrayList<>();
        FakeInstance instance = new FakeInstance(batch -> {
            FakeInstance.copy(batch);
            executions.add(batch.defer());
        });
        try (ModelScheduler scheduler = start(List.of(), instance)) {
            RecordingObserver one = submit(scheduler, "one");
            Threads.await("an execution", () -> executions.size() == 1);
            Threads.await("returned", () -> scheduler.executing().isEmpty());
            look(LIMIT.minusSeconds(1));
            assertThat(scheduler.problems()).isEmpty();

            look(Duration.ofSeconds(2));
            look(Duration.ofSeconds(2));

            assertThat(scheduler.problems()).isEqualTo("requests whose deferred executions take longer than 30 s: 1");
            assertThat(scheduler.overdueTotal()).isEqualTo(1);
            assertThat(scheduler.overdue()).isEqualTo(1);
            assertThat(scheduler.isReady())
                    .as("its only instance has an overdue execution")
                    .isFalse();
            assertThat(scheduler.isServing()).isTrue();

            executions.getFirst().complete();
            one.await(); // and its response stays open
            look(LIMIT.multipliedBy(2));
            assertThat(scheduler.problems()).isEmpty();
            assertThat(scheduler.overdue()).isZero();
            assertThat(scheduler.isReady()).isTrue();
            assertThat(scheduler.overdueTotal()).isEqualTo(1);
            one.close();
        }
    }

    @Test
    void threadsWithoutWorkEndAfterAMinute() throws InterruptedException {
        try (ModelScheduler scheduler = start(List.of(), new FakeInstance(FakeInstance::copy))) {
            submit(scheduler, "one").await().close();
            Thread first = Threads.named("instance/m/1/i0");
            Threads.awaitIdle(first);

            look(Duration.ofSeconds(59));
            Threads.awaitIdle(first);
            look(Duration.ofSeconds(2));
            first.join();

            assertThat(scheduler.isReady()).isTrue();
            submit(scheduler, "two").await().close();
            assertThat(Threads.named("instance/m/1/i0")).isNotSameAs(first);
        }
    }

    @Test
    void threadsLastAsLongAsTheirInstancesIfTheBackendSaysSo() {
        ModelPlan plan =
                new ModelPlan(model, BatchingPolicy.NONE).with(ExecutionTraits.DEFAULT.withLastingThreads(true));
        try (ModelScheduler scheduler = start(plan, new FakeInstance(FakeInstance::copy))) {
            submit(scheduler, "one").await().close();
            Thread first = Threads.named("instance/m/1/i0");
            Threads.awaitIdle(first);

            look(Duration.ofHours(1));

            submit(scheduler, "two").await().close();
            assertThat(Threads.named("instance/m/1/i0")).isSameAs(first);
        }
    }

    /** As on an event loop: the thread that submits executes, and blocks. */
    @Test
    void anOverdueDirectExecutionIsReportedWithTheInstanceAndEndsReadiness() throws InterruptedException {
        Gate gate = new Gate();
        ModelPlan plan = new ModelPlan(model, BatchingPolicy.NONE).with(new ExecutionTraits("b", false, true));
        try (ModelScheduler scheduler = start(plan, gate.instance)) {
            List<RecordingObserver> observers = new CopyOnWriteArrayList<>();
            Thread submitting = Thread.ofPlatform().name("loop").start(() -> observers.add(submit(scheduler, "one")));
            Latches.await(gate.entered);
            assertThat(scheduler.instanceOn(submitting)).contains("i0");
            assertThat(scheduler.executing()).containsExactly(Map.entry("i0", submitting));

            look(LIMIT.plusSeconds(1));

            assertThat(scheduler.isReady()).isFalse();
            assertThat(scheduler.overdue()).isEqualTo(1);
            assertThat(scheduler.problems()).isEqualTo("instances whose executions take longer than 30 s: i0");
            gate.open.countDown();
            submitting.join();
            observers.getFirst().await().close();
            assertThat(scheduler.isReady()).isTrue();
            assertThat(scheduler.executing()).isEmpty();
        }
    }

    @Test
    void aModelIsReadyWhileADeferredExecutionOfOneOfTwoInstancesIsOverdue() {
        List<DeferredExecution> executions = new CopyOnWriteArrayList<>();
        FakeInstance first = deferring(executions);
        FakeInstance second = deferring(executions);
        try (ModelScheduler scheduler = start(List.of(), first, second)) {
            RecordingObserver one = submit(scheduler, "one");
            Threads.await("an execution", () -> executions.size() == 1);
            Threads.await("returned", () -> scheduler.executing().isEmpty());
            look(LIMIT.plusSeconds(1));

            assertThat(scheduler.problems()).isEqualTo("requests whose deferred executions take longer than 30 s: 1");
            assertThat(scheduler.isReady()).isTrue();

            executions.forEach(DeferredExecution::complete);
            one.await().close();
        }
    }

    private static FakeInstance deferring(List<DeferredExecution> executions) {
        return new FakeInstance(batch -> {
            FakeInstance.copy(batch);
            executions.add(batch.defer());
        });
    }

    @Test
    void aModelWithoutMemoryIsNotReadyUntilAnExecutionSucceedsOrAMinuteHasPassed() {
        FakeInstance.Execution refused = batch -> {
            throw new OutOfMemoryError("Cannot reserve 4096 bytes of direct buffer memory");
        };
        FakeInstance.Execution caused = batch -> {
            throw new IllegalStateException(new OutOfMemoryError("Map failed"));
        };
        List<FakeInstance.Execution> executions = new CopyOnWriteArrayList<>(
                List.of(refused, caused, refused, FakeInstance::copy, refused, refused, caused));
        FakeInstance instance =
                new FakeInstance(batch -> executions.removeFirst().execute(batch));
        try (ModelScheduler scheduler = start(List.of(), instance)) {
            submit(scheduler, "a").await();
            submit(scheduler, "b").await();
            assertThat(scheduler.isReady()).as("two requests may be to blame").isTrue();
            submit(scheduler, "c").await();
            assertThat(scheduler.isReady()).isFalse();
            assertThat(scheduler.problems())
                    .isEqualTo("instances whose last executions failed with OutOfMemoryError: i0");

            submit(scheduler, "d").await().close();
            assertThat(scheduler.isReady()).isTrue();
            assertThat(scheduler.problems()).isEmpty();

            List.of("e", "f", "g").forEach(id -> submit(scheduler, id).await());
            assertThat(scheduler.isReady()).isFalse();
            clock.advanceNanos(TimeUnit.SECONDS.toNanos(59));
            assertThat(scheduler.isReady()).isFalse();
            clock.advanceNanos(TimeUnit.SECONDS.toNanos(1));
            assertThat(scheduler.isReady()).isTrue();
            assertThat(scheduler.outOfMemoryTotal()).isEqualTo(6);
        }
        assertThat(fatal).isEmpty();
    }

    @Test
    void anOutputThatIsChangedAfterItWasPassedIsReportedAndTheModelIsNotReady() {
        List<Tensor> kept = new CopyOnWriteArrayList<>();
        FakeInstance instance = new FakeInstance(batch -> {
            for (InferenceRequest request : batch.requests()) {
                Tensor input = request.requireInput("IN");
                Tensor output = request.response().allocate("OUT", input.type(), input.shape());
                output.data().copyFrom(input.data());
                kept.add(output);
            }
        });
        try (ModelScheduler scheduler = start(List.of(), instance)) {
            submit(scheduler, "sound").await().close();
            assertThat(scheduler.changedOutputsTotal()).isZero();
            assertThat(scheduler.isReady()).isTrue();

            RecordingObserver changed = submit(scheduler, "changed").await();
            kept.getLast().data().set(ValueLayout.JAVA_BYTE, 0, (byte) 77);
            changed.close();

            assertThat(scheduler.changedOutputsTotal()).isEqualTo(1);
            assertThat(scheduler.isReady()).isFalse();
            assertThat(scheduler.problems())
                    .isEqualTo("output 'OUT' was changed after it was passed to the server (replace the plugin, or load"
                            + " the model again)");
        }
    }

    @Test
    void anOverdueWarmupIsNoOverdueExecution() throws InterruptedException {
        Gate gate = new Gate();
        Warmup.Sample sample = new Warmup.Sample("s", 1, () -> List.of(request("w")));
        try (ModelScheduler scheduler = start(List.of(sample), gate.instance)) {
            Latches.await(gate.entered);

            look(Duration.ofHours(1));

            assertThat(scheduler.overdueTotal()).isZero();
            assertThat(scheduler.isReady()).isTrue();
            gate.open.countDown();
            scheduler.awaitWarm();
        }
    }

    @Test
    void anExecutionThatEndsTheProcessIsCompletedAndNotAwaited() {
        Gate gate = new Gate();
        ModelScheduler scheduler = start(List.of(), gate.instance);
        RecordingObserver lost = submit(scheduler, "lost");
        Latches.await(gate.entered);
        RecordingObserver waiting = submit(scheduler, "waiting");
        assertThat(scheduler.instanceOn(Thread.currentThread())).isEmpty();
        assertThat(scheduler.instanceOn(Threads.named("instance/m/1/i0"))).contains("i0");

        scheduler.loseExecutionOn(Threads.named("instance/m/1/i0"));

        assertThat(lost.await().error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(waiting.await().error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
        scheduler.close();
        assertThat(gate.instance.isClosed()).isFalse();
        gate.open.countDown(); // releases the memory of the request, for the checks of the test
        Threads.await("end of the execution", () -> memory.bytesInUse() == 0);
    }

    /** An instance whose executions wait. */
    private static final class Gate {
        private final CountDownLatch entered = new CountDownLatch(1);
        private final CountDownLatch open = new CountDownLatch(1);
        private final FakeInstance instance = new FakeInstance(batch -> {
            entered.countDown();
            Latches.await(open);
            FakeInstance.copy(batch);
        });
    }

    private static void await(Gate one, Gate other) {
        Threads.await("an execution", () -> one.entered.getCount() + other.entered.getCount() == 1);
    }

    private void look(Duration later) {
        clock.advanceNanos(later.toNanos());
        timeouts.runExpired(clock.getAsLong());
    }

    private ModelScheduler start(List<Warmup.Sample> warmup, FakeInstance... instances) {
        return start(new ModelPlan(model, BatchingPolicy.NONE).with(warmup), instances);
    }

    private ModelScheduler start(ModelPlan plan, FakeInstance... instances) {
        List<Instance> slots = new ArrayList<>();
        for (FakeInstance instance : instances) {
            slots.add(new Instance("i" + slots.size(), Device.CPU, instance));
        }
        return TriedScheduler.start(
                plan,
                slots,
                new SchedulerEnvironment(memory, clock, timeouts)
                        .with(new Supervision(
                                fatal::add, Optional.of(watchdog), LIMIT, Duration.ofMinutes(5), 1, false)));
    }

    private CheckedRequest request(String id) {
        return Requests.to(model, memory).id(id).floats("IN", Shape.of(1, 2), 1).of(1);
    }

    private RecordingObserver submit(ModelScheduler scheduler, String id) {
        RecordingObserver observer = new RecordingObserver();
        scheduler.submit(request(id), observer);
        return observer;
    }

    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
    private static <T extends Throwable> void sneak(Throwable thrown) throws T {
        throw (T) thrown;
    }
}
