package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.onnx.ort.TestTensors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.BatchInput.Kind;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Tests a model with a ragged input. The model takes the values of all requests flat, and the end of each request's
 * values.
 */
class OnnxRaggedTest {
    private static final TensorSpec VALUES =
            TensorSpec.of("values", DataType.FP32, Shape.of(-1)).with(TensorSpec.Trait.RAGGED);
    private static final TensorSpec DOUBLED = TensorSpec.of("doubled", DataType.FP32, Shape.of(-1));
    private static final TensorSpec RUNNING =
            TensorSpec.of("running", DataType.FP32, Shape.of(1)).withReshape(Shape.SCALAR);
    private static final BatchOutput CUT =
            new BatchOutput(BatchOutput.Kind.SCATTER_WITH_INPUT_SHAPE, List.of("doubled"), "values");

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
    void runsWithDerivedInputs() {
        ModelSettingsBuilder settings = model().batchInput(ends(DataType.INT32));
        ModelInstance instance = backend.instance(settings);

        try (FakeBatch batch = batch(settings, request(1, 2, 3), request(10), request(20, 30))) {
            instance.execute(batch);

            assertThat(batch.outputs().get("doubled").shape().elementCount()).isEqualTo(6);
            assertThat(floats(batch, "doubled")).containsExactly(2, 4, 6, 20, 40, 60);
            assertThat(batch.outputs().get("running").shape()).isEqualTo(Shape.of(3));
            assertThat(floats(batch, "running")).containsExactly(6, 16, 66);
        }
        try (FakeBatch single = batch(settings, request(1, 2))) {
            instance.execute(single);

            assertThat(floats(single, "doubled")).containsExactly(2, 4);
            assertThat(floats(single, "running")).containsExactly(3);
        }
    }

    @Test
    void refusesADerivedInputThatTheModelDoesNotHave() {
        assertRefused(
                model().batchInput(ends(DataType.INT32))
                        .batchInput(new BatchInput(Kind.ELEMENT_COUNT, List.of("counts"), DataType.INT32, "values")),
                "unable to load model 'm', configuration expects 3 inputs, model provides 2 (not needed by the model:"
                        + " counts)");
    }

    @Test
    void refusesADerivedInputOfAnotherType() {
        assertRefused(
                model().batchInput(ends(DataType.FP32)),
                "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'ends', model provides"
                        + " TYPE_INT32");
    }

    @Test
    void refusesADerivedInputOfAnotherShape() {
        assertRefused(
                model().batchInput(new BatchInput(Kind.ITEM_SHAPE, List.of("ends"), DataType.INT32, "values")),
                "unable to load model 'm', configuration expects model provides input with shape [-1,1] for batch input"
                        + " 'ends', model provides [-1]");
    }

    @Test
    void refusesAnInputThatNothingIsDerivedFor() {
        assertRefused(
                model(),
                "unable to load model 'm', configuration expects 1 inputs, model provides 2 (not required by the"
                        + " configuration: ends)");
    }

    private static ModelSettingsBuilder model() {
        return ModelSettings.builder("m", 1)
                .modelFilename("ragged.onnx")
                .maxBatchSize(8)
                .input(VALUES)
                .output(DOUBLED)
                .output(RUNNING)
                .batchOutput(CUT);
    }

    private static BatchInput ends(DataType type) {
        return new BatchInput(Kind.ACCUMULATED_ELEMENT_COUNT, List.of("ends"), type, "values");
    }

    private FakeBatch batch(ModelSettingsBuilder settings, FakeRequest... requests) {
        return new FakeBatch(settings.build(), memory, requests);
    }

    private FakeRequest request(float... values) {
        Tensor tensor = Tensor.of(DataType.FP32, Shape.of(1, values.length), tensors.floats(values));
        return new FakeRequest(1, List.of("doubled", "running")).with("values", tensor);
    }

    private static float[] floats(FakeBatch batch, String output) {
        return batch.outputs().get(output).data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }

    private void assertRefused(ModelSettingsBuilder settings, String message) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> backend.instance(settings))
                .withMessage(message)
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }
}
