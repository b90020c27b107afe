package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.OutputTarget;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.FakeFence;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeDeviceMemory;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Outputs in memory of a device. Observers see them on the host, unless their client wants them elsewhere. */
final class DeviceOutputTest {
    private static final MemoryPlace GPU0 = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
    private static final MemoryPlace GPU1 = new MemoryPlace(MemoryPlace.Kind.GPU, 1);

    private final FakeDeviceMemory gpu = new FakeDeviceMemory(GPU0);
    private final ModelSettings model = settings(false);
    private final List<String> released = new ArrayList<>();

    private static ModelSettings settings(boolean decoupled) {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .decoupled(decoupled)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
    }

    @Test
    void areMovedToTheHost() {
        try (Execution execution = execution(this::allocateForTheBatch)) {
            Execution.submit(execution, 1);
            execution.run();

            assertOnHost(execution, 0, 0, 1);
            assertThat(gpu.copiesToHost()).isEqualTo(1);
            assertThat(gpu.buffersInUse()).isZero();
        }
    }

    @Test
    void areMovedOnceForABatch() {
        try (Execution execution = execution(this::allocateForTheBatch)) {
            Execution.submit(execution, 1, 2, 1);
            execution.run();

            assertOnHost(execution, 0, 0, 1);
            assertOnHost(execution, 1, 10, 11, 12, 13);
            assertOnHost(execution, 2, 20, 21);
            assertThat(gpu.copiesToHost()).isEqualTo(1);
            assertThat(gpu.buffersInUse()).isZero();
        }
    }

    @Test
    void stayWhereTheirClientsTakeThem() {
        List<FakeInstance.Execution> ways = List.of(this::allocateForTheBatch, batch -> {
            for (InferenceRequest request : batch.requests()) {
                Tensor in = request.input("IN").orElseThrow();
                gpu.write(
                        in.data(),
                        request.response()
                                .allocate("OUT", DataType.FP32, in.shape(), GPU0)
                                .data());
            }
        });
        for (FakeInstance.Execution way : ways) {
            for (int number = 1; number <= 3; number++) {
                try (Execution execution = execution(batch -> {
                    assertThat(batch.takesOutput("OUT", GPU0)).isTrue();
                    assertThat(batch.takesOutput("IN", GPU0)).isFalse();
                    way.execute(batch);
                })) {
                    for (int i = 0; i < number; i++) {
                        submitInAnyPlace(execution, i);
                    }
                    execution.run();

                    for (int i = 0; i < number; i++) {
                        Tensor out = execution.observers.get(i).output("OUT");
                        assertThat(out.place()).isEqualTo(GPU0);
                        assertThat(out.fence()).isEmpty();
                        assertThat(gpu.floats(out.data())).containsExactly(i, i + 1);
                    }
                    assertThat(gpu.copiesToHost()).isZero();
                    assertThat(gpu.buffersInUse()).isPositive();
                }
                assertThat(gpu.buffersInUse()).isZero();
            }
        }
    }

    @Test
    void stayInABatchForThoseWhoTakeThemUntilOneDoesNot() {
        try (Execution execution = execution(batch -> {
            assertThat(batch.takesOutput("OUT", GPU0)).isFalse();
            allocateForTheBatch(batch);
        })) {
            submitInAnyPlace(execution, 3);
            Execution.submit(execution, 1);
            execution.run();

            Tensor first = execution.observers.getFirst().output("OUT");
            assertThat(first.place()).isEqualTo(GPU0);
            assertThat(gpu.floats(first.data())).containsExactly(3, 4);
            assertThat(execution.observers.getLast().output("OUT").place()).isEqualTo(MemoryPlace.HOST);
            assertThat(gpu.copiesToHost()).isEqualTo(1);
        }
        assertThat(gpu.buffersInUse()).isZero();
    }

    @Test
    void onTheHostStayThereInAnyPlace() {
        try (Execution execution = execution(FakeInstance::copy)) {
            submitInAnyPlace(execution, 3);
            execution.run();

            assertOnHost(execution, 0, 3, 4);
        }
    }

    @Test
    void ofABatchAreCopiedToTargetsOnTheirDevice() {
        TensorBuffer target = gpu.allocate(1024);
        try (Execution execution = execution(batch -> {
            assertThat(batch.takesOutput("OUT", GPU0)).isTrue();
            assertThat(batch.takesOutput("OUT", GPU1)).isFalse();
            allocateForTheBatch(batch);
        })) {
            for (int i = 0; i < 3; i++) {
                execution.submit(execution
                        .request()
                        .floats("IN", Shape.of(1, 2), i)
                        .into("OUT", new OutputTarget(target.segment().asSlice(256L * i, 8), GPU0))
                        .of(1));
            }
            execution.run();

            for (int i = 0; i < 3; i++) {
                assertThat(gpu.floats(target.segment().asSlice(256L * i, 8))).containsExactly(i, i + 1);
                assertThat(execution.observers.get(i).output("OUT").place()).isEqualTo(GPU0);
            }
            assertThat(gpu.copiesToHost() + gpu.copiesFromHost()).isZero();
            target.close();
            assertThat(gpu.buffersInUse()).isZero();
        }
    }

    @Test
    void areMovedForEachRequest() {
        try (Execution execution = execution(batch -> {
            for (InferenceRequest request : batch.requests()) {
                Tensor in = request.input("IN").orElseThrow();
                Tensor out = request.response().allocate("OUT", DataType.FP32, in.shape(), GPU0);
                assertThat(out.place()).isEqualTo(GPU0);
                gpu.write(in.data(), out.data());
            }
        })) {
            Execution.submit(execution, 1, 2);
            execution.run();

            assertOnHost(execution, 0, 0, 1);
            assertOnHost(execution, 1, 10, 11, 12, 13);
        }
    }

    @Test
    void areMovedFromMemoryOfTheBackend() {
        List<FakeInstance.Execution> ways = List.of(
                batch -> {
                    TensorBuffer buffer = gpu.allocate(8L * batch.size());
                    gpu.write(batch.gather("IN").data(), buffer.segment());
                    Tensor out = Tensor.of(DataType.FP32, Shape.of(batch.size(), 2), buffer.segment(), GPU0);
                    batch.put("OUT", out, releasing(buffer));
                },
                batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        Tensor in = request.input("IN").orElseThrow();
                        TensorBuffer buffer = gpu.allocate(in.byteSize());
                        gpu.write(in.data(), buffer.segment());
                        Tensor out = Tensor.of(DataType.FP32, in.shape(), buffer.segment(), GPU0);
                        request.response().put("OUT", out, releasing(buffer));
                    }
                });
        for (FakeInstance.Execution way : ways) {
            for (int number = 1; number <= 2; number++) {
                try (Execution execution = execution(way)) {
                    Execution.submit(execution, number == 1 ? new int[] {2} : new int[] {2, 1});
                    execution.run();

                    assertOnHost(execution, 0, 0, 1, 2, 3);
                    assertThat(released).isNotEmpty();
                    assertThat(gpu.buffersInUse()).as("released when moved").isZero();
                }
            }
        }
    }

    @Test
    void areMovedFromAStream() {
        ModelSettings decoupled = settings(true);
        try (Execution execution = new Execution(decoupled, new LeakCheckingMemory(gpu), batch -> {
            ResponseSender sender = batch.requests().getFirst().sender();
            InferenceResponse response = sender.newResponse();
            Tensor out = response.allocate("OUT", DataType.FP32, Shape.of(1, 2), GPU0);
            gpu.write(batch.gather("IN").data(), out.data());
            sender.send(response);
            sender.complete();
        })) {
            Execution.submit(execution, 1);
            execution.run();

            assertThat(floats(execution.observers.getFirst().responses().getFirst()))
                    .containsExactly(0, 1);
        }
    }

    @Test
    void showTheShapeOfTheClient() {
        ModelSettings reshaped = ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1, 2)).withReshape(Shape.of(2)))
                .build();
        try (Execution execution = new Execution(reshaped, new LeakCheckingMemory(gpu), this::allocateForTheBatch)) {
            Execution.submit(execution, 1);
            execution.run();
            Execution.submit(execution, 1, 1);
            execution.run();

            for (RecordingObserver observer : execution.observers) {
                assertThat(observer.output("OUT").shape()).isEqualTo(Shape.of(1, 1, 2));
                assertThat(observer.output("OUT").place()).isEqualTo(MemoryPlace.HOST);
            }
        }
    }

    @Test
    void thatNoClientRequestsStayWhereTheyAre() {
        ModelSettings two = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("MORE", DataType.FP32, Shape.of(2)))
                .build();
        try (Execution execution = new Execution(two, new LeakCheckingMemory(gpu), batch -> {
            batch.allocate("OUT", DataType.FP32, Shape.of(2), GPU0);
            batch.allocate("MORE", DataType.FP32, Shape.of(2));
        })) {
            execution.submit(execution
                    .request()
                    .outputs("MORE")
                    .floats("IN", Shape.of(2), 0)
                    .of(1));
            execution.run();

            assertThat(gpu.copiesToHost()).isZero();
            assertThat(gpu.buffersInUse()).isZero();
        }
    }

    @Test
    void withoutMemoryOfTheirDeviceAreRefusedAtOnce() {
        List<FakeInstance.Execution> ways =
                List.of(batch -> batch.put("OUT", elsewhere(batch.size()), () -> released.add("output")), batch -> {
                    for (InferenceRequest request : batch.requests()) {
                        request.response().put("OUT", elsewhere(1), () -> released.add("output"));
                    }
                });
        for (FakeInstance.Execution way : ways) {
            for (int number = 1; number <= 2; number++) {
                released.clear();
                try (Execution execution = execution(batch -> {
                    BackendException refused = catchThrowableOfType(BackendException.class, () -> way.execute(batch));
                    assertThat(released).as("released at once").isNotEmpty();
                    throw refused;
                })) {
                    Execution.submit(execution, number == 1 ? new int[] {1} : new int[] {1, 1});
                    execution.run();

                    execution.observers.forEach(observer -> observer.assertError(
                            ErrorCode.INTERNAL,
                            "output 'OUT' of model 'm': lies in " + GPU1 + " (expected: memory of the host)"));
                }
            }
        }
    }

    @Test
    void cannotBeAllocatedWithoutMemoryOfTheirDevice() {
        List<FakeInstance.Execution> ways = List.of(
                batch -> batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2), GPU1),
                batch -> batch.requests().getFirst().response().allocate("OUT", DataType.FP32, Shape.of(1, 2), GPU1));
        for (FakeInstance.Execution way : ways) {
            for (int number = 1; number <= 2; number++) {
                try (Execution execution = execution(way)) {
                    Execution.submit(execution, number == 1 ? new int[] {1} : new int[] {1, 1});
                    execution.run();

                    execution.observers.forEach(observer -> observer.assertError(
                            ErrorCode.UNSUPPORTED,
                            "output 'OUT' of model 'm': no memory in " + GPU1 + " (expected: memory of the host)"));
                }
            }
        }
    }

    @Test
    void inPinnedMemoryAreAllocatedOnTheHost() {
        MemoryPlace pinned = new MemoryPlace(MemoryPlace.Kind.PINNED, 0);
        try (Execution execution = execution(batch -> {
            Tensor in = batch.gather("IN");
            batch.allocate("OUT", in.type(), in.shape(), pinned).data().copyFrom(in.data());
        })) {
            Execution.submit(execution, 1);
            execution.run();
            Execution.submit(execution, 1, 1);
            execution.run();

            assertOnHost(execution, 0, 0, 1);
            assertOnHost(execution, 2, 10, 11);
        }
    }

    @Test
    void ofByteStringsAreRefused() {
        ModelSettings strings = ModelSettings.builder("m", 1)
                .output(TensorSpec.of("OUT", DataType.BYTES, Shape.of(1)))
                .build();
        try (Execution execution = new Execution(strings, new LeakCheckingMemory(gpu), batch -> {
            TensorBuffer buffer = gpu.allocate(5);
            Tensor out = Tensor.of(DataType.BYTES, Shape.of(1), buffer.segment(), GPU0);
            batch.put("OUT", out, releasing(buffer));
        })) {
            execution.submit(execution.request().of(1));
            execution.run();

            execution
                    .observers
                    .getFirst()
                    .assertError(
                            ErrorCode.INTERNAL,
                            "output 'OUT' of model 'm': byte strings in " + GPU0 + " (expected: memory of the host)");
            assertThat(released).hasSize(1);
        }
    }

    @Test
    void failTheirRequestIfTheirWorkFailed() {
        LeakCheckingMemory memory = new LeakCheckingMemory(gpu);
        try (Execution execution = new Execution(model, memory, batch -> {
            BackendException lost = new BackendException(ErrorCode.UNAVAILABLE, "device lost");
            for (InferenceRequest request : batch.requests()) {
                TensorBuffer buffer = gpu.allocate(8);
                Tensor out = Tensor.of(DataType.FP32, Shape.of(1, 2), buffer.segment(), GPU0)
                        .withFence(new FakeFence(() -> {
                            throw lost;
                        }));
                request.response().put("OUT", out, releasing(buffer));
            }
        })) {
            Execution.submit(execution, 1, 1);
            execution.run();

            execution.observers.forEach(observer -> observer.assertError(ErrorCode.UNAVAILABLE, "device lost"));
            assertThat(released).hasSize(2);
        }
    }

    @Test
    void keepTheirMemoryAndInputsUntilTheirWorkHasEnded() {
        List<FakeInstance.Execution> ways = List.of(
                batch -> {
                    TensorBuffer buffer = gpu.allocate(8);
                    batch.requests().getFirst().response().put("OUT", longWork(buffer), releasing(buffer));
                },
                batch -> {
                    TensorBuffer buffer = gpu.allocate(8);
                    batch.put("OUT", longWork(buffer), releasing(buffer));
                });
        for (FakeInstance.Execution way : ways) {
            released.clear();
            try (Execution execution = execution(way)) {
                execution.submit(execution
                        .request()
                        .floats("IN", Shape.of(1, 2), 3)
                        .onRelease(() -> released.add("inputs"))
                        .of(1));
                execution.run();

                assertThat(released).containsExactly("waits", "waits", "waits", "output", "inputs");
                assertThat(execution.observers.getFirst().output("OUT").place()).isEqualTo(MemoryPlace.HOST);
            }
        }
    }

    private Tensor longWork(TensorBuffer buffer) {
        return Tensor.of(DataType.FP32, Shape.of(1, 2), buffer.segment(), GPU0)
                .withFence(FakeFence.ofLongWork(3, () -> released.add("waits")));
    }

    @Test
    void ofAStreamKeepTheirMemoryIfTheirWorkDoesNotEnd() {
        List<String> events = new ArrayList<>();
        TensorBuffer written = gpu.allocate(8);
        try (Execution execution = new Execution(settings(true), new LeakCheckingMemory(gpu), batch -> {
            ResponseSender sender = batch.requests().getFirst().sender();
            InferenceResponse response = sender.newResponse();
            Tensor out = Tensor.of(DataType.FP32, Shape.of(1, 2), written.segment(), GPU0)
                    .withFence(FakeFence.ofEndlessWork());
            response.put("OUT", out, () -> events.add("released"));
            sender.send(response);
            sender.complete();
        })) {
            Execution.submit(execution, 1);
            execution.run();

            execution
                    .observers
                    .getFirst()
                    .assertError(ErrorCode.INTERNAL, "work of " + GPU0 + " did not end within 60 s");
            assertThat(events).isEmpty();
            written.close();
        }
    }

    @Test
    void ofAStreamAreFreedWhenTheirWorkHasEnded() {
        for (boolean sends : new boolean[] {true, false}) {
            List<String> events = new ArrayList<>();
            try (Execution execution = new Execution(settings(true), new LeakCheckingMemory(gpu), batch -> {
                ResponseSender sender = batch.requests().getFirst().sender();
                InferenceResponse response = sender.newResponse();
                response.allocate("OUT", DataType.FP32, Shape.of(1, 2), GPU0);
                response.fence("OUT", new FakeFence(() -> events.add("buffers " + gpu.buffersInUse())));
                if (sends) {
                    sender.send(response);
                } else {
                    response.discard();
                }
                sender.complete();
            })) {
                Execution.submit(execution, 1);
                execution.run();

                assertThat(events).containsExactly("buffers 1");
                assertThat(gpu.buffersInUse()).isZero();
            }
        }
    }

    @Test
    void lieElsewhereIfATargetOnTheirDeviceIsNotAligned() {
        TensorBuffer region = gpu.allocate(64 + 8);
        MemorySegment target = region.segment().asSlice(64);
        List<Long> addresses = new ArrayList<>();
        try (Execution execution = execution(batch -> {
            Tensor in = batch.requests().getFirst().input("IN").orElseThrow();
            Tensor out = batch.requests().getFirst().response().allocate("OUT", DataType.FP32, in.shape(), GPU0);
            addresses.add(out.data().address());
            gpu.write(in.data(), out.data());
        })) {
            execution.submit(execution
                    .request()
                    .floats("IN", Shape.of(1, 2), 3)
                    .into("OUT", new OutputTarget(target, GPU0))
                    .onRelease(region::close)
                    .of(1));
            execution.run();

            assertThat(gpu.floats(target)).containsExactly(3, 4);
            assertThat(addresses.getFirst() % 256).isZero();
        }
    }

    @Test
    void areMovedWhenTheirWorkHasEnded() {
        List<String> events = new ArrayList<>();
        Fence fence = new FakeFence(() -> events.add("copies " + gpu.copiesToHost()));
        try (Execution execution = execution(batch -> {
            TensorBuffer buffer = gpu.allocate(8L * batch.size());
            gpu.write(batch.gather("IN").data(), buffer.segment());
            Tensor out = Tensor.of(DataType.FP32, Shape.of(batch.size(), 2), buffer.segment(), GPU0)
                    .withFence(fence);
            batch.put("OUT", out, releasing(buffer));
        })) {
            Execution.submit(execution, 1);
            execution.run();
            Execution.submit(execution, 1, 1);
            execution.run();

            assertThat(events).containsExactly("copies 0", "copies 1");
            assertOnHost(execution, 0, 0, 1);
            assertOnHost(execution, 2, 10, 11);
            assertThat(execution.observers.get(2).output("OUT").fence()).isEmpty();
        }
    }

    @Test
    void areWrittenToATargetOnTheHost() {
        MemorySegment target = Arena.ofAuto().allocate(64, 64);
        try (Execution execution = execution(this::allocateForTheBatch)) {
            execution.submit(execution
                    .request()
                    .floats("IN", Shape.of(1, 2), 3)
                    .into("OUT", target)
                    .of(1));
            execution.run();

            assertThat(target.asSlice(0, 8).toArray(ValueLayout.JAVA_FLOAT)).containsExactly(3, 4);
            assertThat(execution.observers.getFirst().output("OUT").data().address())
                    .isEqualTo(target.address());
            assertThat(gpu.buffersInUse()).isZero();
        }
    }

    @Test
    void lieInATargetOnTheirDevice() {
        TensorBuffer target = gpu.allocate(8);
        try (Execution execution = execution(this::allocateForTheBatch)) {
            RecordingObserver observer = execution.submit(execution
                    .request()
                    .floats("IN", Shape.of(1, 2), 3)
                    .into("OUT", new OutputTarget(target.segment(), GPU0))
                    .onRelease(target::close)
                    .of(1));
            execution.run();

            assertThat(gpu.floats(target.segment())).containsExactly(3, 4);
            assertThat(observer.output("OUT").place()).isEqualTo(GPU0);
            assertThat(observer.output("OUT").data().address())
                    .isEqualTo(target.segment().address());
            assertThat(gpu.copiesToHost() + gpu.copiesFromHost()).isZero();
            assertThat(gpu.buffersInUse()).as("the target").isEqualTo(1);
        }
    }

    /** The client asks for its input to be replaced: it is read until the execution has ended. */
    @Test
    void lieElsewhereIfATargetOverlapsAnInput() {
        TensorBuffer region = gpu.allocate(1024);
        gpu.write(MemorySegment.ofArray(new float[] {3, 4}), region.segment().asSlice(0, 8));
        List<Boolean> apart = new ArrayList<>();
        try (Execution execution = execution(batch -> {
            Tensor in = batch.requests().getFirst().input("IN").orElseThrow();
            Tensor out = batch.allocate("OUT", DataType.FP32, in.shape(), GPU0);
            apart.add(out.data().address() != region.segment().address());
            gpu.write(MemorySegment.ofArray(new float[] {5, 6}), out.data());
        })) {
            execution.submit(execution
                    .request()
                    .input(
                            "IN",
                            Tensor.of(
                                    DataType.FP32,
                                    Shape.of(1, 2),
                                    region.segment().asSlice(0, 8),
                                    GPU0))
                    .into("OUT", new OutputTarget(region.segment().asSlice(0, 8), GPU0))
                    .onRelease(region::close)
                    .of(1));
            execution.run();

            assertThat(apart).containsExactly(true);
            assertThat(gpu.floats(region.segment().asSlice(0, 8))).containsExactly(5, 6);
        }
    }

    @Test
    void onTheHostAreMovedToATargetOnADevice() {
        TensorBuffer target = gpu.allocate(8);
        try (Execution execution = execution(FakeInstance::copy)) {
            RecordingObserver observer = execution.submit(execution
                    .request()
                    .floats("IN", Shape.of(1, 2), 3)
                    .into("OUT", new OutputTarget(target.segment(), GPU0))
                    .onRelease(target::close)
                    .of(1));
            RecordingObserver other = execution.submit(
                    execution.request().floats("IN", Shape.of(1, 2), 5).of(1));
            execution.run();

            assertThat(gpu.floats(target.segment())).containsExactly(3, 4);
            assertThat(observer.output("OUT").place()).isEqualTo(GPU0);
            assertThat(other.floats("OUT")).containsExactly(5, 6);
            assertThat(gpu.copiesFromHost()).isEqualTo(1);
        }
    }

    @Test
    void failARequestWhoseTargetLiesOnAnUnknownDevice() {
        FakeDeviceMemory unknown = new FakeDeviceMemory(GPU1);
        TensorBuffer target = unknown.allocate(8);
        try (Execution execution = execution(FakeInstance::copy)) {
            RecordingObserver observer = execution.submit(execution
                    .request()
                    .floats("IN", Shape.of(1, 2), 3)
                    .into("OUT", new OutputTarget(target.segment(), GPU1))
                    .onRelease(target::close)
                    .of(1));
            execution.run();

            observer.assertError(
                    ErrorCode.UNSUPPORTED,
                    "output 'OUT' of model 'm': no memory in " + GPU1 + " (expected: memory of the host)");
        }
        unknown.close();
    }

    /** Submits a request with two numbers, whose output may lie anywhere. */
    private static void submitInAnyPlace(Execution execution, float first) {
        execution.submit(execution
                .request()
                .floats("IN", Shape.of(1, 2), first)
                .inAnyPlace("OUT")
                .of(1));
    }

    /** Copies {@code IN} to {@code OUT} on the device, for the whole batch. */
    private void allocateForTheBatch(Batch batch) {
        Tensor in = batch.gather("IN");
        Tensor out = batch.allocate("OUT", in.type(), in.shape(), GPU0);
        assertThat(out.place()).isEqualTo(GPU0);
        gpu.write(in.data(), out.data());
    }

    private Runnable releasing(TensorBuffer buffer) {
        return () -> {
            released.add("output");
            buffer.close();
        };
    }

    /** Returns a tensor on a device of which the server has no memory. */
    private static Tensor elsewhere(int items) {
        Shape shape = Shape.of(items, 2);
        return Tensor.of(DataType.FP32, shape, Arena.ofAuto().allocate(shape.byteSize(DataType.FP32)), GPU1);
    }

    private Execution execution(FakeInstance.Execution backend) {
        return new Execution(model, new LeakCheckingMemory(gpu), backend);
    }

    private static void assertOnHost(Execution execution, int request, float... expected) {
        Tensor out = execution.observers.get(request).output("OUT");
        assertThat(out.place()).isEqualTo(MemoryPlace.HOST);
        assertThat(execution.observers.get(request).floats("OUT")).containsExactly(expected);
    }

    private static float[] floats(InferResponse response) {
        NamedTensor output = response.outputs().getFirst();
        assertThat(output.tensor().place()).isEqualTo(MemoryPlace.HOST);
        return output.tensor().data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }
}
