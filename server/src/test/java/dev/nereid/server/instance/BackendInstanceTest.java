package dev.nereid.server.instance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import dev.nereid.api.ModelRef;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.server.response.ResponseHolders;
import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.DeviceInstanceContext;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeDeviceMemory;
import dev.nereid.testkit.LeakCheckingMemory;
import inference.ModelInstanceGroup;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Scratch memory of instances. */
final class BackendInstanceTest {
    private static final MemoryPlace GPU0 = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
    private static final MemoryPlace GPU1 = new MemoryPlace(MemoryPlace.Kind.GPU, 1);
    private static final MemoryPlace PINNED = new MemoryPlace(MemoryPlace.Kind.PINNED, 0);

    private static final String RELEASED_IT =
            " not closed, and the server released it (expected: AllocatedMemory.close,"
                    + " at the latest in ModelInstance.close)";

    private final ResponseHolders holders = new ResponseHolders();
    private final ResponseHolder owner = holders.add(new ModelRef("m", 2), "m", "p", Runnable::run);

    private final InstancePlan plan = new InstancePlan(
            "m_0",
            Device.CPU,
            List.of("p"),
            false,
            ModelInstanceGroup.newBuilder().build());
    private final FakeDeviceMemory gpu = new FakeDeviceMemory(GPU0);
    private final LeakCheckingMemory memory = new LeakCheckingMemory(gpu);
    private final List<InstanceContext> contexts = new ArrayList<>();
    private final List<String> events = new ArrayList<>();

    private final Model model = context -> {
        contexts.add(context);
        return new RecordingInstance(events);
    };

    private BackendInstance create(Model creating, InstancePlan as) {
        return create(creating, as, ServerOptions.of(Path.of("models")).models().instances());
    }

    private BackendInstance create(Model creating, InstancePlan as, InstanceOptions options) {
        return BackendInstance.create(creating, as, memory, options, new FakeOwner(owner));
    }

    @Test
    void allocatesMemoryOfTheHost() {
        BackendInstance instance = create(model, plan);
        InstanceContext context = contexts.getFirst();

        AllocatedMemory allocated = context.allocate(MemoryPlace.HOST, 100);
        assertThat(allocated.place()).isEqualTo(MemoryPlace.HOST);
        assertThat(allocated.segment().byteSize()).isEqualTo(100);
        assertThat(allocated.segment().address() % 64).isZero();
        allocated.segment().set(ValueLayout.JAVA_BYTE, 99, (byte) 1);
        assertThat(memory.bytesInUse()).isEqualTo(100);
        allocated.close();
        allocated.close();

        assertThat(memory.bytesInUse()).isZero();
        try (AllocatedMemory pinned = context.allocate(PINNED, 8)) {
            assertThat(pinned.place()).as("readable like it").isEqualTo(MemoryPlace.HOST);
        }
        try (AllocatedMemory empty = context.allocate(MemoryPlace.HOST, 0)) {
            assertThat(empty.segment().byteSize()).isZero();
        }
        instance.close();
        memory.close();
    }

    /** A start that cannot be cancelled uses the memory on. */
    @Test
    void closesAnInstanceWithTheEndOfItsStart() throws Exception {
        CompletableFuture<Void> start = new CompletableFuture<>() {
            @Override
            public boolean cancel(boolean mayInterruptIfRunning) {
                return false;
            }
        };
        CompletableFuture<Long> closed = new CompletableFuture<>();
        BackendInstance instance = create(
                context -> {
                    AllocatedMemory allocated = context.allocate(MemoryPlace.HOST, 8);
                    return new StartingInstance(start, () -> {
                        closed.complete(memory.bytesInUse());
                        allocated.close();
                    });
                },
                plan);
        assertThat(instance.started()).isNotDone();

        instance.close();
        assertThat(closed).isNotDone();
        start.complete(null);

        assertThat(closed.get(30, TimeUnit.SECONDS)).isEqualTo(8);
    }

    @Test
    void closesAnInstanceThatFailsAtTheBeginOfItsStart() {
        List<String> closed = new ArrayList<>();
        BackendException failure = new BackendException(ErrorCode.UNAVAILABLE, "no program");

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> create(
                        context -> {
                            context.allocate(MemoryPlace.HOST, 8);
                            return new FailingInstance(failure, closed);
                        },
                        plan))
                .isSameAs(failure);
        assertThat(closed).containsExactly("closed");
        memory.close();
    }

    private record StartingInstance(CompletableFuture<Void> started, Runnable whenClosed) implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            throw new IllegalStateException("not reached");
        }

        @Override
        public void close() {
            whenClosed.run();
        }
    }

    private record FailingInstance(BackendException failure, List<String> closed) implements ModelInstance {
        @Override
        public CompletionStage<Void> started() {
            throw failure;
        }

        @Override
        public void execute(Batch batch) {
            throw new IllegalStateException("not reached");
        }

        @Override
        public void close() {
            closed.add("closed");
        }
    }

    @Test
    void refusesSizesThatNoMemoryHas() {
        BackendInstance instance = create(model, plan);
        for (MemoryPlace place : List.of(MemoryPlace.HOST, PINNED, GPU0, GPU1)) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> contexts.getFirst().allocate(place, Long.MIN_VALUE))
                    .withMessage("byteSize: -9223372036854775808 (expected: >= 0)");
        }
        instance.close();
        memory.close();
    }

    @Test
    void keepsThePlaceWherePinnedMemoryRunsOut() {
        memory.withPinned(100);
        BackendInstance instance = create(model, plan);
        InstanceContext context = contexts.getFirst();

        AllocatedMemory pinned = context.allocate(PINNED, 60);
        BackendException refused = catchThrowableOfType(BackendException.class, () -> context.allocate(PINNED, 60));

        assertThat(pinned.place()).isEqualTo(PINNED);
        assertThat(refused.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(refused)
                .hasMessage("no pinned memory for 60 bytes. Use --pinned-memory-pool-byte-size to increase the limit.");
        pinned.close();
        instance.close();
        memory.close();
    }

    @Test
    void reportsMemoryThatAnInstanceLeaves() {
        for (int left = 0; left <= 2; left++) {
            BackendInstance instance = create(model, plan);
            for (int i = 0; i < 2; i++) {
                AllocatedMemory allocated = contexts.getLast().allocate(MemoryPlace.HOST, 8);
                if (i >= left) {
                    allocated.close();
                }
            }
            instance.close();
        }

        assertThat(holders.forgotten())
                .containsExactly(
                        "model 'm', version 2, plugin 'p': 1 allocation of 8 bytes of instance 'm_0' was" + RELEASED_IT,
                        "model 'm', version 2, plugin 'p': 2 allocations of 16 bytes of instance 'm_0' were"
                                + RELEASED_IT.replace("released it", "released them"));
        assertThat(memory.bytesInUse()).isZero();
        memory.close();
    }

    @Tag("slow")
    @Test
    @Timeout(60)
    void freesMemoryThatAnInstanceHasForgotten() {
        BackendInstance instance = create(model, plan);
        InstanceContext context = contexts.getFirst();
        AllocatedMemory kept = context.allocate(MemoryPlace.HOST, 8);
        List<MemorySegment> parts = new ArrayList<>(
                List.of(context.allocate(MemoryPlace.HOST, 16).segment().asSlice(8)));
        forget(context);
        forget(context);

        awaitBytesInUse(24);

        parts.getFirst().set(ValueLayout.JAVA_BYTE, 7, (byte) 1);
        parts.clear();
        awaitBytesInUse(8);
        assertThat(holders.forgotten())
                .containsExactly("model 'm', version 2, plugin 'p': an allocation of 100 bytes of instance 'm_0' was"
                        + RELEASED_IT);
        kept.close();
        instance.close();
        assertThat(holders.forgotten())
                .hasSize(2)
                .last()
                .isEqualTo("model 'm', version 2, plugin 'p': 3 allocations of 216 bytes of instance 'm_0' in all were"
                        + RELEASED_IT.replace("released it", "released them"));
        memory.close();
    }

    private static void forget(InstanceContext context) {
        context.allocate(MemoryPlace.HOST, 100).segment().fill((byte) 1);
    }

    private void awaitBytesInUse(long bytes) {
        while (memory.bytesInUse() != bytes) {
            assertThat(Thread.currentThread().isInterrupted()).as("time out").isFalse();
            System.gc();
            Thread.onSpinWait();
        }
    }

    @Test
    void allocatesMemoryOfDevices() {
        BackendInstance instance = create(model, plan);
        InstanceContext context = contexts.getFirst();

        AllocatedMemory allocated = context.allocate(GPU0, 8);
        assertThat(allocated.place()).isEqualTo(GPU0);
        assertThat(gpu.floats(allocated.segment())).containsExactly(0, 0);
        BackendException refused = catchThrowableOfType(BackendException.class, () -> context.allocate(GPU1, 8));

        assertThat(refused).hasMessage("no memory in " + GPU1 + " (expected: memory of the host)");
        assertThat(refused.code()).isEqualTo(ErrorCode.UNSUPPORTED);
        instance.close();
        memory.close();
    }

    @ParameterizedTest
    @CsvSource({"0, 79, false", "0, 80, false", "0, 81, true", "1, 100, false"})
    void refusesInstancesBeyondTheLimitOfTheirGpu(int limited, long usedBytes, boolean refused) {
        InstancePlan onGpu = new InstancePlan(
                "m_0", new Device(Device.Kind.GPU, 0), List.of(), false, ModelInstanceGroup.getDefaultInstance());
        InstanceOptions options = ServerOptions.of(Path.of("models"))
                .with(o -> o.gpuLimits = new GpuLoadLimits(Map.of(limited, 0.8)))
                .models()
                .instances();
        gpu.setUse(usedBytes, 100);

        if (refused) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> create(model, onGpu, options))
                    .withMessage(
                            "can not create model 'm_0': memory limit set for KIND_GPU 0 has exceeded, model loading"
                                    + " is rejected. 81 of 100 bytes are in use (expected: at most 0.8 of them; see"
                                    + " --model-load-gpu-limit)")
                    .matches(e -> e.code() == ErrorCode.UNAVAILABLE);
            assertThat(events).containsExactly("close");
        } else {
            create(model, onGpu, options).close();
        }
        create(model, plan, options).close(); // on the CPU
        memory.close();
    }

    @Test
    void isNotReadyWhenItsGpuHasFailed() {
        InstancePlan onGpu = new InstancePlan(
                "m_0", new Device(Device.Kind.GPU, 0), List.of(), false, ModelInstanceGroup.getDefaultInstance());
        gpu.fail("GPU 0 has failed: of a test");

        assertThat(isReady(onGpu)).isFalse();
        assertThat(isReady(plan)).isTrue();
        memory.close();
    }

    private boolean isReady(InstancePlan as) {
        ModelPlan settings = new ModelPlan(ModelSettings.builder("m", 1).build(), BatchingPolicy.NONE);
        SchedulerEnvironment environment =
                new SchedulerEnvironment(memory, System::nanoTime, new TimeoutQueue(() -> {}));
        BackendInstance instance = create(_ -> _ -> {}, as);
        try (ModelScheduler scheduler = ModelScheduler.start(settings, List.of(instance.scheduled()), environment)) {
            return scheduler.checkReady().toCompletableFuture().join().isReady();
        }
    }

    @Test
    void countsAsTensorMemory() {
        try (TensorPool pool = new TensorPool(1 << 20, 0)) {
            BackendInstance instance = BackendInstance.create(
                    model,
                    plan,
                    pool,
                    ServerOptions.of(Path.of("models")).models().instances(),
                    new FakeOwner(owner));
            InstanceContext context = contexts.getFirst();

            AllocatedMemory allocated = context.allocate(MemoryPlace.HOST, 500_000);
            assertThat(pool.bytesInUse()).isEqualTo(500_000);
            BackendException refused =
                    catchThrowableOfType(BackendException.class, () -> context.allocate(MemoryPlace.HOST, 600_000));

            assertThat(refused.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            allocated.close();
            assertThat(pool.bytesInUse()).isZero();
            instance.close();
        }
    }

    @Test
    void freesWhatTheInstanceLeaves() {
        BackendInstance instance = create(model, plan);
        InstanceContext context = contexts.getFirst();
        AllocatedMemory left = context.allocate(MemoryPlace.HOST, 8);
        context.allocate(MemoryPlace.HOST, 16);
        context.allocate(GPU0, 32);

        instance.close();
        left.close();

        assertThat(events).containsExactly("close");
        memory.close();
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> context.allocate(MemoryPlace.HOST, 1))
                .withMessage("instance 'm_0': closed");
        memory.close();
    }

    @Test
    void freesTheMemoryOfAnInstanceThatFails() {
        Model failing = context -> {
            context.allocate(MemoryPlace.HOST, 8);
            throw new BackendException(ErrorCode.INTERNAL, "broken");
        };

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> create(failing, plan))
                .withMessage("broken");
        memory.close();
    }

    @Test
    void closesOnceWhateverItsSchedulerDoes() {
        BackendInstance instance = create(model, plan);
        InstanceContext context = contexts.getFirst();

        instance.scheduled().close();
        instance.close();

        assertThat(events).containsExactly("close");
        assertThat(instance.plan().name()).isEqualTo("m_0");
        assertThat(context.name()).isEqualTo("m_0");
        assertThat(context.device()).isEqualTo(Device.CPU);
        assertThat(context)
                .asInstanceOf(type(DeviceInstanceContext.class))
                .satisfies(device -> assertThat(device.profiles()).containsExactly("p"));
        assertThat(context.hostPolicy()).isEqualTo(plan.hostPolicy());
    }

    private record RecordingInstance(List<String> events) implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            events.add("execute");
        }

        @Override
        public void close() {
            events.add("close");
        }
    }
}
