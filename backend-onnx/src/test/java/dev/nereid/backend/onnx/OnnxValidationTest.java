package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.onnx.ort.OrtElementType;
import dev.nereid.backend.onnx.ort.OrtTensorInfo;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OnnxValidationTest {
    private static final TensorSpec A = fp32("a", Shape.of(4));
    private static final TensorSpec B = fp32("b", Shape.of(4));
    private static final TensorSpec SUM = fp32("sum", Shape.of(4));

    @Test
    void acceptsAConfigurationThatAgrees() {
        assertAccepted(settings("add_sub.onnx").input(A).input(B).output(SUM));
        assertAccepted(settings("batched_add_sub.onnx")
                .maxBatchSize(2)
                .input(A)
                .input(B)
                .output(SUM));
        assertAccepted(settings("batched_scalar.onnx")
                .maxBatchSize(2)
                .input(fp32("input", Shape.of(1)).withReshape(Shape.SCALAR))
                .output(fp32("output", Shape.of(1)).withReshape(Shape.SCALAR)));
    }

    @Test
    void acceptsFixedDimensionsForInputsThatTheModelLeavesOpen() {
        assertAccepted(settings("identity_float.onnx")
                .maxBatchSize(2)
                .input(fp32("input", Shape.of(7)))
                .output(fp32("output", Shape.of(-1))));
    }

    @Test
    void refusesNamesThatTheModelDoesNotHave() {
        assertRefused(
                settings("add_sub.onnx").input(A).input(fp32("c", Shape.of(4))).output(SUM),
                "unexpected inference input 'c', allowed inputs are: a, b");
        assertRefused(
                settings("add_sub.onnx").input(A).input(B).output(fp32("product", Shape.of(4))),
                "unexpected inference output 'product', allowed outputs are: difference, sum");
    }

    @Test
    void countsInputsBeforeItLooksAtTheirNames() {
        assertRefused(
                settings("add_sub.onnx")
                        .input(A)
                        .input(B)
                        .input(fp32("extra", Shape.of(4)))
                        .output(SUM),
                "unable to load model 'm', configuration expects 3 inputs, model provides 2 (not needed by the model:"
                        + " extra)");
        assertRefused(
                settings("default_input.onnx")
                        .input(fp32("input", Shape.of(2)))
                        .input(fp32("bias", Shape.of(2)))
                        .output(fp32("output", Shape.of(2))),
                "unable to load model 'm', configuration expects 2 inputs, model provides 1 (not needed by the model:"
                        + " bias)");
    }

    @Test
    void refusesAnInputThatIsMissing() {
        assertRefused(
                settings("add_sub.onnx").input(A).output(SUM),
                "unable to load model 'm', configuration expects 1 inputs, model provides 2 (not required by the"
                        + " configuration: b)");
    }

    @Test
    void takesAnInputForProvidedThatStandsElsewhereInTheConfiguration() {
        assertAccepted(settings("add_sub.onnx")
                .input(A)
                .output(SUM)
                .json("{\"sequence_batching\":{\"control_input\":[{\"name\":\"b\"}]}}"));
    }

    @Test
    void takesOnlyAConfigurationOfSequencesForProvidingMore() {
        assertRefused(
                settings("add_sub.onnx").input(A).output(SUM).json("{\"metric_tags\":{\"b\":\"b\"}}"),
                "unable to load model 'm', configuration expects 1 inputs, model provides 2 (not required by the"
                        + " configuration: b)");
    }

    @Test
    void refusesOtherTypes() {
        assertRefused(
                settings("add_sub.onnx")
                        .input(TensorSpec.of("a", DataType.INT32, Shape.of(4)))
                        .input(B)
                        .output(SUM),
                "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'a', model provides"
                        + " TYPE_FP32");
        assertRefused(
                settings("identity_string.onnx")
                        .input(fp32("input", Shape.of(-1)))
                        .output(fp32("output", Shape.of(-1))),
                "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'input', model provides"
                        + " TYPE_BYTES");
        assertRefused(
                settings("add_sub.onnx").input(A).input(B).output(TensorSpec.of("sum", DataType.BYTES, Shape.of(4))),
                "unable to load model 'm', configuration expects datatype TYPE_STRING for output 'sum', model provides"
                        + " TYPE_FP32");
    }

    @Test
    void refusesOtherDimensions() {
        assertRefused(
                settings("add_sub.onnx").input(fp32("a", Shape.of(5))).input(B).output(SUM),
                "model 'm', tensor 'a': the model expects 1 dimensions (shape [4]) but the model configuration"
                        + " specifies 1 dimensions (shape [5])");
        assertRefused(
                settings("batched_add_sub.onnx")
                        .maxBatchSize(2)
                        .input(fp32("a", Shape.of(4, 1)))
                        .input(B)
                        .output(SUM),
                "model 'm', tensor 'a': the model expects 2 dimensions (shape [-1,4]) but the model configuration"
                        + " specifies 3 dimensions (an initial batch dimension because max_batch_size > 0 followed by"
                        + " the explicit tensor shape, making complete shape [-1,4,1])");
    }

    @Test
    void refusesFixedDimensionsForOutputsThatTheModelLeavesOpen() {
        assertRefused(
                settings("identity_float.onnx")
                        .maxBatchSize(2)
                        .input(fp32("input", Shape.of(7)))
                        .output(fp32("output", Shape.of(7))),
                "model 'm', tensor 'output': the model expects 2 dimensions (shape [-1,-1]) but the model configuration"
                        + " specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by"
                        + " the explicit tensor shape, making complete shape [-1,7])");
    }

    @Test
    void refusesBatchesOfAModelWithoutBatchDimension() {
        String reason = "': for the model to support batching the shape should have at least 1 dimension and the first"
                + " dimension must be -1; but shape expected by the model is ";
        assertRefused(
                settings("add_sub.onnx").maxBatchSize(2).input(A).input(B).output(SUM),
                "model 'm', tensor 'a" + reason + "[4]");
        assertRefused(
                settings("negated_scalar.onnx")
                        .maxBatchSize(2)
                        .input(fp32("input", Shape.of(1)).withReshape(Shape.SCALAR))
                        .output(fp32("output", Shape.of(1))),
                "model 'm', tensor 'input" + reason + "[]");
    }

    @Test
    void refusesDimensionsOtherThanOneForScalars() {
        assertRefused(
                settings("negated_scalar.onnx")
                        .input(fp32("input", Shape.of(1, 2)))
                        .output(fp32("output", Shape.of(1))),
                "unable to load model 'm', scalar tensor 'input', should only provide 1 in the model configuration when"
                        + " the model doesn't support batching. Model configuration provided: [1,2].");
    }

    /** ONNX Runtime reports 0 dimensions for both, and the reference server does not check further. */
    @ParameterizedTest
    @CsvSource({"2", "-1"})
    void takesAModelWithoutDimensionsForScalar(long dim) {
        String text = "', should only provide 1 in the model configuration when the model doesn't support batching."
                + " Model configuration provided: [" + dim + "].";

        assertRefused(
                settings("unknown_rank.onnx")
                        .input(fp32("input", Shape.of(dim)))
                        .output(fp32("output", Shape.of(1))),
                "unable to load model 'm', scalar tensor 'input" + text);
        assertRefused(
                settings("unknown_rank.onnx").input(fp32("input", Shape.of(1))).output(fp32("output", Shape.of(dim))),
                "unable to load model 'm', scalar tensor 'output" + text);
        assertAccepted(settings("unknown_rank.onnx")
                .input(fp32("input", Shape.of(1, 1)))
                .output(fp32("output", Shape.of(1))));
    }

    @Test
    void refusesOptionalInputsThatCannotBeLeftOut() {
        assertRefused(
                settings("add_sub.onnx")
                        .input(A)
                        .input(B.with(TensorSpec.Trait.OPTIONAL))
                        .output(SUM),
                "unable to load model 'm', configuration expects 1 inputs, model provides 2 (not required by the"
                        + " configuration: b)");
        assertRefused(
                settings("batched_add_sub.onnx")
                        .maxBatchSize(2)
                        .input(A)
                        .input(B)
                        .input(fp32("c", Shape.of(4)).with(TensorSpec.Trait.OPTIONAL))
                        .output(SUM),
                "unable to load model 'm', optional input 'c' is not supported for models that support batching");
    }

    @Test
    void refusesAnOptionalInputThatTheModelNeedsThoughTheNumbersAgree() {
        assertRefused(
                settings("default_input.onnx")
                        .input(fp32("input", Shape.of(2)).with(TensorSpec.Trait.OPTIONAL))
                        .input(fp32("bias", Shape.of(2)))
                        .output(fp32("output", Shape.of(2))),
                "unable to load model 'm', configuration expects 1 inputs, model provides 1 (not required by the"
                        + " configuration: input)");
    }

    @Test
    void refusesRaggedInputsOfAnyShapeButOne() {
        assertRefused(
                settings("add_sub.onnx")
                        .input(A.with(TensorSpec.Trait.RAGGED))
                        .input(B)
                        .output(SUM),
                "unable to load model 'm', configuration expects model provides input with shape [-1]  for ragged input"
                        + " 'a', model provides [4]");
    }

    @Test
    void refusesTypesThatHaveNoNameOnTheWire() {
        OrtTensorInfo complex = new OrtTensorInfo(
                "c",
                OrtTensorInfo.Kind.TENSOR,
                OrtElementType.COMPLEX64,
                true,
                java.util.List.of(),
                java.util.List.of());

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> OnnxTensors.dataType(complex, "input"))
                .withMessage("model input 'c' must specify 'data_type' (expected: a type of the protocol; the model has"
                        + " COMPLEX64)");
    }

    @Test
    void refusesOutputsThatAreNoTensorsWhateverIsConfigured() {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> assertAccepted(settings("sequence.onnx").input(fp32("input", Shape.of(2)))))
                .withMessage("Unsupported ONNX Type 'ONNX_TYPE_SEQUENCE' for I/O 'output', expected"
                        + " 'ONNX_TYPE_TENSOR'.")
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.UNSUPPORTED);
    }

    private static void assertAccepted(ModelSettingsBuilder settings) {
        try (TestBackend backend = new TestBackend()) {
            ModelInstance instance = backend.instance(settings);
            assertThat(instance.checkReady()).isCompleted();
        }
    }

    private static void assertRefused(ModelSettingsBuilder settings, String message) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> assertAccepted(settings))
                .withMessage(message)
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    private static ModelSettingsBuilder settings(String file) {
        return ModelSettings.builder("m", 1).modelFilename(file);
    }

    private static TensorSpec fp32(String name, Shape dims) {
        return TensorSpec.of(name, DataType.FP32, dims);
    }
}
