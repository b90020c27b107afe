package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.onnx.ort.TestTensors;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Where the states of sequences lie: neither copied nor joined by the backend. */
class OnnxStateTest {
    private static final Shape FOUR = Shape.of(4, 4);

    private final TestTensors tensors = new TestTensors();
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private TestBackend backend;

    @BeforeEach
    void open() {
        backend = new TestBackend();
    }

    @AfterEach
    void close() {
        backend.close();
        tensors.close();
        memory.close();
    }

    @Test
    void aStateOfAKnownShapeIsWrittenIntoMemoryOfTheServer() {
        ModelSettingsBuilder settings = sums(TensorSpec.of("difference", DataType.FP32, Shape.of(4)));
        ModelInstance instance = backend.instance(settings);
        Deque<FakeBatch> batches = new ArrayDeque<>();
        Tensor present = filled(0);
        for (int step = 1; step <= 5; step++) {
            FakeBatch batch = batch(settings, present, "difference");
            batches.push(batch);
            instance.execute(batch);

            assertThat(batch.gather("b").data().address())
                    .isEqualTo(present.data().address());
            assertThat(memory.buffersInUse()).as("an output and a state each").isEqualTo(2 * step);
            present = batch.writtenState("sum").orElseThrow();
            assertThat(present.shape()).isEqualTo(FOUR);
            assertThat(TestTensors.floats(present.data())).containsOnly(step);
        }
        batches.forEach(FakeBatch::close);
        assertThat(memory.buffersInUse()).isZero();
    }

    @Test
    void aStateThatTheClientGetsIsTheOutputItself() {
        ModelSettingsBuilder settings = sums(TensorSpec.of("sum", DataType.FP32, Shape.of(4)));
        try (FakeBatch batch = batch(settings, filled(2), "sum")) {
            backend.instance(settings).execute(batch);

            assertThat(batch.writtenState("sum").orElseThrow().data().address())
                    .isEqualTo(batch.outputs().get("sum").data().address());
            assertThat(TestTensors.floats(batch.outputs().get("sum").data())).containsOnly(3);
            assertThat(memory.buffersInUse()).isEqualTo(1);
        }
    }

    @Test
    void aStateOfAnUnknownShapeIsPassedWhereItLies() {
        Shape any = Shape.of(Shape.VARIABLE);
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .modelFilename("identity_int64.onnx")
                .maxBatchSize(8)
                .json("{\"sequence_batching\":{\"state\":[{\"input_name\":\"input\"}]}}")
                .sequenceBatching(states(StateSpec.of("input", "output", DataType.INT64, any)));
        FakeRequest request = new FakeRequest(1, List.of())
                .with("input", Tensor.of(DataType.INT64, Shape.of(1, 3), tensors.longs(7, 8, 9)))
                .withState("output", memory);
        try (FakeBatch batch = new FakeBatch(settings.build(), memory, request)) {
            backend.instance(settings).execute(batch);

            Tensor state = batch.writtenState("output").orElseThrow();
            assertThat(state.shape()).isEqualTo(Shape.of(1, 3));
            assertThat(state.data().toArray(ValueLayout.JAVA_LONG)).containsExactly(7, 8, 9);
            assertThat(memory.buffersInUse()).isZero();
        }
    }

    private static ModelSettingsBuilder sums(TensorSpec output) {
        return ModelSettings.builder("m", 1)
                .modelFilename("batched_add_sub.onnx")
                .json("{\"sequence_batching\":{\"state\":[{\"input_name\":\"b\"}]}}")
                .maxBatchSize(8)
                .input(TensorSpec.of("a", DataType.FP32, Shape.of(4)))
                .output(output)
                .sequenceBatching(states(StateSpec.of("b", "sum", DataType.FP32, Shape.of(4))));
    }

    private static SequenceBatching states(StateSpec state) {
        return SequenceBatching.of(SequenceBatching.Strategy.OLDEST, Duration.ofSeconds(1))
                .with(state);
    }

    private FakeBatch batch(ModelSettingsBuilder settings, Tensor state, String output) {
        FakeRequest request = new FakeRequest(4, List.of(output))
                .with("a", filled(1))
                .with("b", state)
                .withState("sum", memory);
        return new FakeBatch(settings.build(), memory, request);
    }

    private Tensor filled(float value) {
        float[] values = new float[16];
        Arrays.fill(values, value);
        return Tensor.of(DataType.FP32, FOUR, tensors.floats(values));
    }
}
