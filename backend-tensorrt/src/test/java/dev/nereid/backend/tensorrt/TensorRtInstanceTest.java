package dev.nereid.backend.tensorrt;

import static dev.nereid.backend.tensorrt.EngineTensors.input;
import static dev.nereid.backend.tensorrt.EngineTensors.output;
import static dev.nereid.backend.tensorrt.EngineTensors.range;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.tensorrt.TensorRtModel.LoadedEngine;
import dev.nereid.backend.tensorrt.TensorRtOptions.Priority;
import dev.nereid.backend.tensorrt.runtime.EngineFormat;
import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.cuda.GpuContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Executions of batches, with a driver and an engine that compute on the host. */
@Timeout(60)
final class TensorRtInstanceTest {
    private static final MemoryPlace GPU = new MemoryPlace(MemoryPlace.Kind.GPU, 0);

    private final HostDriver driver = new HostDriver();
    private final GpuContext gpu = new GpuContext(driver.driver(), 0);
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)));

    /** Where the latest output lay. */
    private MemoryPlace outputPlace = MemoryPlace.HOST;

    private FakeEngine engine = new FakeEngine(
            driver,
            2,
            input(
                    "IN",
                    Shape.of(-1, 2),
                    range(Shape.of(1, 2), Shape.of(1, 2), Shape.of(2, 2)),
                    range(Shape.of(2, 2), Shape.of(8, 2), Shape.of(8, 2))),
            output("OUT", Shape.of(-1, 2)));

    @AfterEach
    void leavesNothing() {
        memory.close();
        assertThat(driver.living()).isZero();
        assertThat(engine.openContexts).hasValue(0);
    }

    private ModelInstance open(boolean graphs, String... profiles) {
        TensorRtOptions options = new TensorRtOptions(graphs, Priority.MAX, false, Map.of(), "", "FP32", 0, Map.of());
        TensorRtModel model =
                new TensorRtModel(settings.build(), options, Map.of(0, new LoadedEngine(gpu, engine, 10)));
        assertThat(model.memoryUsage().getFirst().byteSize()).isEqualTo(1010);
        return model.newInstance(
                new FakeInstanceContext("i", new Device(Device.Kind.GPU, 0), List.of(profiles), memory));
    }

    private FakeRequest request(float... numbers) {
        Shape shape = Shape.of(numbers.length / 2, 2);
        return new FakeRequest(numbers.length / 2, List.of("OUT")).with("IN", Tensor.ofFloats(shape, numbers));
    }

    private void assertRuns(ModelInstance instance, FakeBatch batch, float... expected) throws InterruptedException {
        try (batch) {
            instance.execute(batch);
            assertThat(batch.isDeferred()).isTrue();
            assertThat(batch.awaitEnd(Duration.ofSeconds(30))).isTrue();
            Tensor out = batch.outputs().get("OUT"); // memory of the host, wherever it says it lies
            outputPlace = out.place();
            if (out.place().equals(GPU)) {
                assertThat(out.fence().orElseThrow().await(Duration.ofSeconds(30)))
                        .isTrue();
                assertThat(batch.marks()).contains("inputsRead");
            } else {
                assertThat(out.fence()).isEmpty();
                assertThat(batch.marks()).contains("inputsRead", "outputsComputed");
            }
            assertThat(Tensor.of(out.type(), out.shape(), out.data()).floats()).containsExactly(expected);
        }
    }

    private FakeBatch batch(FakeRequest... requests) {
        return new FakeBatch(settings.build(), memory, requests).withDevice(GPU);
    }

    @Test
    void joinsRequestsAndChoosesAProfile() throws Exception {
        try (ModelInstance instance = open(false, "0", "1")) {
            assertRuns(instance, batch(request(1, 2)), 1, 2);
            assertRuns(instance, batch(request(1, 2), request(3, 4, 5, 6)), 1, 2, 3, 4, 5, 6);
            assertRuns(instance, batch(request(1, 2), request(3, 4)), 1, 2, 3, 4);
            assertThat(instance.checkReady()).isCompleted();
        }
        assertThat(engine.executions).containsExactly(0, 1, 0);
    }

    @Test
    void refusesShapesThatNoProfileAllows() throws Exception {
        try (ModelInstance instance = open(false, "0");
                FakeBatch batch = batch(request(1, 2, 3, 4, 5, 6))) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> instance.execute(batch))
                    .withMessage("no optimization profile of the instance allows the inputs: 'IN' [3,2] (expected:"
                            + " [1,2] to [2,2])")
                    .matches(e -> e.code() == ErrorCode.INVALID_ARGUMENT);
            assertThat(batch.isDeferred()).isFalse();
            assertRuns(instance, batch(request(7, 8)), 7, 8);
        }
    }

    @Test
    void leavesOutputsOnTheDeviceIfRequestsTakeThemThere() throws Exception {
        for (boolean graphs : new boolean[] {false, true}) {
            try (ModelInstance instance = open(graphs, "0", "1")) {
                for (int i = 0; i < 4; i++) {
                    FakeBatch batch = batch(request(1, 2), request(3, 4, i, 6)).takingOutputsIn(GPU);
                    assertRuns(instance, batch, 1, 2, 3, 4, i, 6);
                    assertThat(outputPlace).isEqualTo(GPU);
                    assertRuns(instance, batch(request(1, 2)), 1, 2);
                    assertThat(outputPlace.isHost()).isTrue();
                }
            }
        }
    }

    @Test
    void capturesRepeatedExecutionsAsGraphs() throws Exception {
        try (ModelInstance instance = open(true, "0")) {
            for (int i = 0; i < 6; i++) { // two sets of buffers: each is seen once, captured once, launched after that
                assertRuns(instance, batch(request(1, 2)), 1, 2);
            }
        }
        assertThat(driver.launchedGraphs()).isEqualTo(4);
    }

    @Test
    void enqueuesWhatCannotBeCaptured() throws Exception {
        driver.spoilCaptures();
        try (ModelInstance instance = open(true, "0")) {
            for (int i = 0; i < 6; i++) {
                assertRuns(instance, batch(request(i, 2)), i, 2);
            }
        }
        assertThat(driver.launchedGraphs()).isZero();
    }

    /** Makes the model add its input to a state. */
    private void addUp() {
        settings.sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(1))
                .with(StateSpec.of("S_IN", "S_OUT", DataType.FP32, Shape.of(2))));
        engine = new FakeEngine(
                driver,
                1,
                input("IN", Shape.of(-1, 2), range(Shape.of(1, 2), Shape.of(1, 2), Shape.of(8, 2))),
                input("S_IN", Shape.of(-1, 2), range(Shape.of(1, 2), Shape.of(1, 2), Shape.of(8, 2))),
                output("OUT", Shape.of(-1, 2)),
                output("S_OUT", Shape.of(-1, 2)));
    }

    @Test
    void keepsStatesOnTheDevice() throws Exception {
        addUp();
        try (ModelInstance instance = open(true, "0");
                FakeBatch batch = batch(request(1, 2)
                        .with("S_IN", Tensor.ofFloats(Shape.of(1, 2), 10, 20))
                        .withState("S_OUT", memory))) {
            instance.execute(batch);
            assertThat(batch.awaitEnd(Duration.ofSeconds(30))).isTrue();

            assertThat(batch.outputs().get("OUT").floats()).containsExactly(11, 22);
            Tensor state = batch.writtenState("S_OUT").orElseThrow();
            assertThat(state.place()).isEqualTo(GPU);
            assertThat(HostDriver.memory(state.data().address(), 8).toArray(ValueLayout.JAVA_FLOAT_UNALIGNED))
                    .containsExactly(11, 22);
        }
    }

    @Test
    void keepsStatesAndOutputsOnTheHostIfNoMemoryIsLeftOnTheDevice() throws Exception {
        addUp();
        try (ModelInstance instance = open(false, "0");
                FakeBatch batch = batch(request(1, 2)
                                .with("S_IN", Tensor.ofFloats(Shape.of(1, 2), 10, 20))
                                .withState("S_OUT", memory))
                        .takingOutputsIn(GPU)
                        .withoutMemoryIn(GPU)) {
            instance.execute(batch);
            assertThat(batch.awaitEnd(Duration.ofSeconds(30))).isTrue();

            assertThat(batch.outputs().get("OUT").floats()).containsExactly(11, 22);
            assertThat(batch.writtenState("S_OUT").orElseThrow().floats()).containsExactly(11, 22);
        }
    }

    @Test
    void joinsRaggedInputsFlat() throws Exception {
        ModelSettings ragged = ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE))
                        .with(TensorSpec.Trait.RAGGED))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
                .build();
        engine = new FakeEngine(
                driver,
                1,
                input("IN", Shape.of(-1), range(Shape.of(1), Shape.of(8), Shape.of(64))),
                output("OUT", Shape.of(-1, 1)));
        TensorRtModel model = new TensorRtModel(
                ragged,
                new TensorRtOptions(false, Priority.DEFAULT, false, Map.of(), "", "FP32", 0, Map.of()),
                Map.of(0, new LoadedEngine(gpu, engine, 10)));
        try (ModelInstance instance = model.newInstance(
                        new FakeInstanceContext("i", new Device(Device.Kind.GPU, 0), List.of(), memory));
                FakeBatch batch = new FakeBatch(
                                ragged,
                                memory,
                                new FakeRequest(3, List.of("OUT")).with("IN", Tensor.ofFloats(Shape.of(3, 1), 1, 2, 3)),
                                new FakeRequest(1, List.of("OUT")).with("IN", Tensor.ofFloats(Shape.of(1, 1), 4)))
                        .withDevice(GPU)) {
            instance.execute(batch);
            assertThat(batch.awaitEnd(Duration.ofSeconds(30))).isTrue();
            assertThat(batch.outputs().get("OUT").floats()).containsExactly(1, 2, 3, 4);
        }
    }

    @Test
    void takesPaddedInputs() throws Exception {
        ModelSettings padded = ModelSettings.builder("m", 1)
                .maxBatchSize(2)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(3, 1, 1)).with(TensorSpec.Trait.NON_LINEAR_FORMAT))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(3, 1, 1)))
                .build();
        Shape largest = Shape.of(2, 3, 1, 1);
        engine = new FakeEngine(
                driver,
                1,
                new EngineTensor(
                        "IN",
                        true,
                        "kFLOAT",
                        Shape.of(-1, 3, 1, 1),
                        false,
                        new EngineFormat("kCHW4", 1, 4),
                        List.of(range(Shape.of(1, 3, 1, 1), largest, largest))),
                output("OUT", Shape.of(-1, 3, 1, 1)));
        TensorRtModel model = new TensorRtModel(
                padded,
                new TensorRtOptions(false, Priority.DEFAULT, false, Map.of(), "", "FP32", 0, Map.of()),
                Map.of(0, new LoadedEngine(gpu, engine, 10)));
        assertThat(model.paddedInputs()).containsExactly(Map.entry("IN", Shape.of(4, -1, -1)));
        try (ModelInstance instance = model.newInstance(
                        new FakeInstanceContext("i", new Device(Device.Kind.GPU, 0), List.of(), memory));
                FakeBatch batch = new FakeBatch(
                                padded,
                                memory,
                                new FakeRequest(1, List.of("OUT"))
                                        .with("IN", Tensor.ofFloats(Shape.of(1, 4, 1, 1), 1, 2, 3, 0)),
                                new FakeRequest(1, List.of("OUT"))
                                        .with("IN", Tensor.ofFloats(Shape.of(1, 4, 1, 1), 4, 5, 6, 0)))
                        .withDevice(GPU)) {
            instance.execute(batch);
            assertThat(batch.awaitEnd(Duration.ofSeconds(30))).isTrue();

            assertThat(batch.outputs().get("OUT").shape()).isEqualTo(largest);
            assertThat(batch.outputs().get("OUT").floats()).containsExactly(1, 2, 3, 4, 5, 6);

            FakeRequest larger =
                    new FakeRequest(1, List.of("OUT")).with("IN", Tensor.ofFloats(Shape.of(1, 8, 1, 1), new float[8]));
            try (FakeBatch refused = new FakeBatch(padded, memory, larger).withDevice(GPU)) {
                assertThatExceptionOfType(BackendException.class)
                        .isThrownBy(() -> instance.execute(refused))
                        .withMessageContaining("'IN' [1,8,1,1] (expected: [1,3,1,1] to [2,3,1,1])");
            }
        }
    }

    @Test
    void servesAfterAFailedExecution() throws Exception {
        try (ModelInstance instance = open(false, "0")) {
            engine.fails = true;
            for (int i = 0; i < 2 * TensorRtModel.EAGER_SETS; i++) { // no set of buffers is lost
                try (FakeBatch batch = batch(request(1, 2)).withWrongOutputs()) {
                    assertThatExceptionOfType(BackendException.class)
                            .isThrownBy(() -> instance.execute(batch))
                            .withMessage("execution: not enqueued: of a test");
                }
            }
            engine.fails = false;
            assertRuns(instance, batch(request(1, 2)), 1, 2);
        }
    }

    @Test
    void isNotReadyOnAGpuThatFailed() throws Exception {
        HostDriver failing = new HostDriver();
        GpuContext lost = new GpuContext(failing.driver(), 0);
        TensorRtModel model = new TensorRtModel(
                settings.build(),
                new TensorRtOptions(false, Priority.DEFAULT, true, Map.of(), "", "FP32", 0, Map.of()),
                Map.of(0, new LoadedEngine(lost, engine, 10)));
        ModelInstance instance =
                model.newInstance(new FakeInstanceContext("i", new Device(Device.Kind.GPU, 0), List.of(), memory));
        failing.fail();
        try (FakeBatch batch = batch(request(1, 2)).withWrongOutputs()) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> instance.execute(batch))
                    .withMessage("GPU 0: setCurrent: 700 CUDA_ERROR_ILLEGAL_ADDRESS")
                    .matches(e -> e.code() == ErrorCode.UNAVAILABLE);
        }
        assertThat(instance.checkReady())
                .isCompletedExceptionally()
                .failsWithin(Duration.ZERO)
                .withThrowableThat()
                .havingCause()
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                .withMessageContaining("700 CUDA_ERROR_ILLEGAL_ADDRESS");
        instance.close();
        engine.openContexts.set(0); // those of a GPU that failed end with the process
    }

    @Test
    void runsOnGpusAlone() {
        TensorRtModel model = new TensorRtModel(
                settings.build(),
                new TensorRtOptions(false, Priority.DEFAULT, false, Map.of(), "", "FP32", 0, Map.of()),
                Map.of());
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> model.newInstance(new FakeInstanceContext("i", Device.CPU, List.of(), memory)))
                .withMessage("i: an instance on cpu (expected: instance_group { kind: KIND_GPU })");
    }
}
