package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.api.OutputTarget;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.Timing;
import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.FakeFence;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.statistics.MeterReading;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeDeviceMemory;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Outputs on a device that are passed on while work of it writes them. */
final class OutputFenceTest {
    private static final MemoryPlace GPU0 = new MemoryPlace(MemoryPlace.Kind.GPU, 0);

    private static final int THREADS = 2;

    @AutoClose
    private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);

    private final FakeDeviceMemory gpu = new FakeDeviceMemory(GPU0);
    private final List<String> events = new ArrayList<>();
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    private Execution execution;

    @Test
    void isDeliveredWhilePending() {
        List<FakeInstance.Execution> ways = List.of(
                batch -> {
                    batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU0);
                    batch.fence("OUT", work());
                },
                batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        request.response().allocate("OUT", DataType.FP32, Shape.of(1, 2), GPU0);
                        request.response().fence("OUT", work());
                    }
                },
                batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        TensorBuffer buffer = gpu.allocate(8);
                        request.response().put("OUT", ofBackend(1, buffer), buffer::close);
                    }
                },
                batch -> {
                    TensorBuffer buffer = gpu.allocate(8L * batch.size());
                    batch.put("OUT", ofBackend(batch.size(), buffer), buffer::close);
                });
        for (FakeInstance.Execution way : ways) {
            for (int number = 1; number <= 3; number++) {
                events.clear();
                try (Execution running = execution(way)) {
                    execution = running;
                    submit(number, () -> events.add("inputs"));
                    running.run();

                    assertThat(events).startsWith("awaited with " + number + " responses");
                    assertThat(events.stream().filter("inputs"::equals))
                            .as("inputs that stayed until then")
                            .hasSize(number);
                    for (RecordingObserver observer : running.observers) {
                        Tensor out = observer.output("OUT");
                        assertThat(out.place()).isEqualTo(GPU0);
                        assertThat(out.fence().orElseThrow().isDone()).isTrue();
                    }
                    assertThat(gpu.copiesToHost()).isZero();
                }
                assertThat(gpu.buffersInUse()).isZero();
            }
        }
    }

    @Test
    void keepsTheMemoryOfResponsesThatAreClosedBefore() {
        for (int number = 1; number <= 2; number++) {
            List<Integer> buffers = new ArrayList<>();
            try (Execution running = execution(batch -> {
                batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU0);
                batch.fence("OUT", new FakeFence(() -> {
                    execution.observers.forEach(RecordingObserver::close);
                    buffers.add(gpu.buffersInUse());
                }));
            })) {
                execution = running;
                submit(number, () -> {});
                running.run();

                assertThat(buffers).containsExactly(1);
                assertThat(gpu.buffersInUse()).isZero();
            }
        }
    }

    @Test
    void isAwaitedBeforeTheOutputIsMovedToTheHost() {
        for (int number = 1; number <= 2; number++) {
            events.clear();
            try (Execution running = execution(this::allocateWithFence)) {
                execution = running;
                submit(number - 1, () -> {});
                Execution.submit(running, 1);
                running.run();

                assertThat(events).containsExactly("awaited with 0 responses");
                Tensor moved = running.observers.getLast().output("OUT");
                assertThat(moved.place()).isEqualTo(MemoryPlace.HOST);
                assertThat(moved.fence()).isEmpty();
            }
            assertThat(gpu.buffersInUse()).isZero();
        }
    }

    @Test
    void isAwaitedForAnOutputThatNoRequestWants() {
        ModelSettings two = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("MORE", DataType.FP32, Shape.of(2)))
                .build();
        try (Execution running = new Execution(two, new LeakCheckingMemory(gpu), batch -> {
            batch.allocate("OUT", DataType.FP32, Shape.of(2), GPU0);
            batch.fence("OUT", new FakeFence(() -> events.add("buffers " + gpu.buffersInUse())));
            batch.allocate("MORE", DataType.FP32, Shape.of(2));
        })) {
            running.submit(running.request()
                    .outputs("MORE")
                    .floats("IN", Shape.of(2), 0)
                    .of(1));
            running.run();

            assertThat(events).containsExactly("buffers 1");
            assertThat(gpu.buffersInUse()).isZero();
        }
    }

    @Test
    void tellsReadersOfAFailure() {
        try (Execution running = execution(batch -> {
            batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU0);
            batch.fence("OUT", new FakeFence(() -> {
                throw new BackendException(ErrorCode.UNAVAILABLE, "device lost");
            }));
        })) {
            submit(running, 1, () -> {});
            running.run();

            Fence fence = running.observers.getFirst().output("OUT").fence().orElseThrow();
            assertThat(fence.isDone()).isTrue();
            for (int i = 0; i < 2; i++) {
                assertThatExceptionOfType(BackendException.class)
                        .isThrownBy(() -> fence.await(Duration.ZERO))
                        .withMessage("device lost")
                        .returns(ErrorCode.UNAVAILABLE, BackendException::code);
            }
        }
        assertThat(gpu.buffersInUse()).isZero();
    }

    @Test
    void leavesTheBackendAloneAfterTheEnd() {
        List<Fence> passed = new ArrayList<>();
        Fence ofBackend = new Fence() {
            private boolean ended;

            @Override
            public boolean isDone() {
                assertThat(ended).as("called after its end").isFalse();
                return false;
            }

            @Override
            public boolean await(Duration timeout) {
                Fence fence =
                        execution.observers.getFirst().output("OUT").fence().orElseThrow();
                passed.add(fence);
                assertThat(fence.withEvent(event -> events.add("event " + event)))
                        .isTrue();
                assertThat(fence.isDone()).isFalse();
                ended = true;
                return true;
            }

            @Override
            public boolean withEvent(LongConsumer action) {
                assertThat(ended).as("called after its end").isFalse();
                action.accept(4097);
                return true;
            }
        };
        try (Execution running = execution(batch -> {
            batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU0);
            batch.fence("OUT", ofBackend);
        })) {
            execution = running;
            submit(1, () -> {});
            running.run();

            Fence fence = passed.getFirst();
            assertThat(events).containsExactly("event 4097");
            assertThat(fence.isDone()).isTrue();
            assertThat(fence.withEvent(event -> events.add("later"))).isFalse();
            assertThat(events).hasSize(1);
        }
    }

    @Test
    void keepsMemoryAndInputsForAsLongAsTheWorkGoesOn() {
        try (Execution running = execution(batch -> {
            batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU0);
            batch.fence(
                    "OUT",
                    FakeFence.ofLongWork(
                            3,
                            () -> events.add(gpu.buffersInUse() + " in use, "
                                    + execution.observers.getFirst().hasEnded())));
        })) {
            execution = running;
            submit(1, () -> events.add("inputs"));
            running.run();

            assertThat(events).containsExactly("1 in use, true", "1 in use, true", "1 in use, true", "inputs");
        }
    }

    /** The GPU writes to memory of the client until its work has ended. */
    @Test
    void isAwaitedBeforeACancelledRequestIsAnswered() {
        for (boolean intoTarget : new boolean[] {true, false}) {
            events.clear();
            TensorBuffer target = gpu.allocate(256);
            try (Execution running = execution(batch -> {
                batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU0);
                execution.requests.getFirst().cancel();
                batch.fence("OUT", work());
            })) {
                execution = running;
                Requests request = running.request().floats("IN", Shape.of(1, 2), 3);
                running.submit((intoTarget
                                ? request.into("OUT", new OutputTarget(target.segment(), GPU0))
                                : request.inAnyPlace("OUT"))
                        .of(1));
                running.run();

                assertThat(events).containsExactly("awaited with 0 responses");
                running.observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
                target.close();
            }
            assertThat(gpu.buffersInUse()).isZero();
        }
    }

    @Test
    void isAwaitedBeforeAFailedRequestIsAnswered() {
        for (int number = 1; number <= 2; number++) {
            events.clear();
            try (Execution running = execution(batch -> {
                batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU0);
                batch.fence("OUT", work());
                throw new BackendException(ErrorCode.UNAVAILABLE, "of a test");
            })) {
                execution = running;
                submit(number, () -> {});
                running.run();

                assertThat(events).containsExactly("awaited with 0 responses");
                running.observers.forEach(observer -> observer.assertError(ErrorCode.UNAVAILABLE, "of a test"));
            }
            assertThat(gpu.buffersInUse()).isZero();
        }
    }

    /** One of the batch goes to memory of its client, which may read it as soon as it is answered. */
    @Test
    void isAwaitedForAllIfOneOutputGoesToATarget() {
        TensorBuffer target = gpu.allocate(256);
        try (Execution running = execution(batch -> {
            gpu.write(
                    batch.gather("IN").data(),
                    batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU0)
                            .data());
            batch.fence("OUT", work());
        })) {
            execution = running;
            submit(1, () -> {});
            running.submit(running.request()
                    .floats("IN", Shape.of(1, 2), 3)
                    .into("OUT", new OutputTarget(target.segment(), GPU0))
                    .of(1));
            running.run();

            assertThat(events).containsExactly("awaited with 0 responses");
            assertThat(gpu.floats(target.segment().asSlice(0, 8))).containsExactly(3, 4);
            target.close();
        }
    }

    @Test
    void failsAllRequestsIfOneOfThemHasToWait() {
        try (Execution running = execution(batch -> {
            batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU0);
            batch.fence("OUT", new FakeFence(() -> {
                throw new BackendException(ErrorCode.UNAVAILABLE, "device lost");
            }));
        })) {
            submit(running, 1, () -> {});
            Execution.submit(running, 1);
            running.run();

            running.observers.forEach(observer -> observer.assertError(ErrorCode.UNAVAILABLE, "device lost"));
        }
        assertThat(gpu.buffersInUse()).isZero();
    }

    /** Each request may be continued by a thread of its own. */
    @Tag("slow")
    @Test
    void isAwaitedWhicheverThreadNamesIt() {
        for (int round = 0; round < 1000; round++) {
            AtomicInteger awaited = new AtomicInteger();
            AtomicInteger started = new AtomicInteger();
            try (Execution running = execution(batch -> {
                for (InferenceRequest request : batch.requests()) {
                    request.response().allocate("OUT", DataType.FP32, Shape.of(1, 2), GPU0);
                }
                CompletableFuture.allOf(batch.requests().stream()
                                .map(request ->
                                        CompletableFuture.runAsync(() -> fence(request, started, awaited), threads))
                                .toArray(CompletableFuture[]::new))
                        .join();
            })) {
                submit(running, THREADS, () -> {});
                running.run();

                assertThat(awaited).hasValue(THREADS);
            }
            assertThat(gpu.buffersInUse()).isZero();
        }
    }

    private static void fence(InferenceRequest request, AtomicInteger started, AtomicInteger awaited) {
        try {
            InferenceResponse response = request.response();
            Fence fence = new FakeFence(awaited::incrementAndGet);
            started.incrementAndGet();
            while (started.get() < THREADS) { // so that they meet
                Thread.onSpinWait();
            }
            response.fence("OUT", fence);
        } catch (BackendException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void countsTheWorkAsInference() {
        for (int number = 1; number <= 2; number++) {
            try (Execution running = execution(batch -> {
                batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU0);
                batch.fence("OUT", new FakeFence(() -> execution.scheduler.clock.advance(Duration.ofNanos(5_000))));
            })) {
                execution = running;
                submit(number, () -> {});
                running.run();

                MeterReading read = running.scheduler.model.meter().read();
                Timing infer = read.inferences().compute().infer();
                assertThat(infer.nanos()).isEqualTo(5_000L * number);
                assertThat(infer.count()).isEqualTo(number);
                assertThat(read.inferences().success().nanos()).isEqualTo(5_000L * number);
                BatchStatistics batch = read.executions().batches().getFirst();
                assertThat(batch.compute().infer()).isEqualTo(new Timing(1, 5_000));
            }
        }
    }

    @Test
    void needsAnAllocatedOutput() {
        for (int number = 1; number <= 2; number++) {
            try (Execution running = execution(batch -> {
                BackendException refused =
                        catchThrowableOfType(BackendException.class, () -> batch.fence("OUT", work()));
                assertThat(refused)
                        .hasMessageContaining("'OUT'")
                        .hasMessageContaining("a fence without memory (expected: allocated before)")
                        .returns(ErrorCode.INTERNAL, BackendException::code);
                FakeInstance.copy(batch);
            })) {
                submit(running, number, () -> {});
                running.run();

                assertThat(running.observers.getFirst().floats("OUT")).containsExactly(0, 1);
            }
        }
    }

    private void allocateWithFence(Batch batch) {
        batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU0);
        batch.fence("OUT", work());
    }

    /** Returns work that counts the responses when it is awaited. */
    private Fence work() {
        return new FakeFence(() -> events.add("awaited with "
                + execution.observers.stream()
                        .filter(RecordingObserver::hasEnded)
                        .count()
                + " responses"));
    }

    private Tensor ofBackend(int items, TensorBuffer buffer) {
        return Tensor.of(DataType.FP32, Shape.of(items, 2), buffer.segment(), GPU0)
                .withFence(work());
    }

    private Execution execution(FakeInstance.Execution backend) {
        return new Execution(model, new LeakCheckingMemory(gpu), backend);
    }

    private void submit(int number, Runnable release) {
        submit(execution, number, release);
    }

    /** Submits requests that take their output on the device. */
    private static void submit(Execution to, int number, Runnable release) {
        for (int i = 0; i < number; i++) {
            to.submit(to.request()
                    .floats("IN", Shape.of(1, 2), i)
                    .inAnyPlace("OUT")
                    .onRelease(release)
                    .of(1));
        }
    }
}
