package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OnnxCompletionTest {
    @Test
    void fillsEverythingFromAModelThatCanBatch() {
        ModelCompletion completion = complete(settings("batched_add_sub.onnx"));

        assertThat(completion.proposedMaxBatchSize()).hasValue(4);
        assertThat(completion.dynamicBatching()).isTrue();
        assertThat(completion.inputs()).containsExactly(fp32("a", Shape.of(4)), fp32("b", Shape.of(4)));
        assertThat(completion.outputs()).containsExactly(fp32("sum", Shape.of(4)), fp32("difference", Shape.of(4)));
        assertThat(completion.decoupled()).isEmpty();
    }

    @Test
    void fillsEverythingFromAModelThatCannotBatch() {
        ModelCompletion completion = complete(settings("add_sub.onnx"));

        assertThat(completion.proposedMaxBatchSize()).hasValue(0);
        assertThat(completion.dynamicBatching()).isFalse();
        assertThat(completion.inputs()).containsExactly(fp32("a", Shape.of(4)), fp32("b", Shape.of(4)));
        assertThat(completion.outputs()).containsExactly(fp32("sum", Shape.of(4)), fp32("difference", Shape.of(4)));
    }

    /** Every input and output needs a first dimension that is open, of one name as far as they have names. */
    @ParameterizedTest
    @CsvSource({
        "identity_float.onnx, 4",
        "batched_scalar.onnx, 4",
        "negated_scalar.onnx, 0",
        "non_zero.onnx, 0",
        "wrong_output_shape.onnx, 0",
        "constant.onnx, 0",
        "gather.onnx, 4",
        "compress.onnx, 0"
    })
    void batchesWhereEveryTensorHasAnOpenFirstDimension(String file, int maxBatchSize) {
        assertThat(complete(settings(file)).proposedMaxBatchSize()).hasValue(maxBatchSize);
    }

    @Test
    void fillsWholeShapesWhereFirstDimensionsDiffer() {
        ModelCompletion completion = complete(settings("compress.onnx"));

        assertThat(completion.dynamicBatching()).isFalse();
        assertThat(completion.inputs())
                .containsExactly(
                        fp32("input", Shape.of(-1, 4)), TensorSpec.of("condition", DataType.BOOL, Shape.of(-1)));
        assertThat(completion.outputs()).containsExactly(fp32("output", Shape.of(-1, 4)));
    }

    /** The owner knows better. */
    @Test
    void takesTheConfiguredBatchSizeWhereFirstDimensionsDiffer() {
        assertThat(complete(settings("compress.onnx").maxBatchSize(8)).proposedMaxBatchSize())
                .hasValue(8);
    }

    /** A 0 counts as none here; the server does not let it batch if an owner wrote it. */
    @ParameterizedTest
    @CsvSource({
        "0, 4, 4, true",
        "0, 1, 1, false",
        "0, 0, 0, false",
        "0, 16, 16, true",
        "1, 4, 1, false",
        "8, 4, 8, true"
    })
    void takesTheConfiguredBatchSizeBeforeTheDefault(int configured, String byDefault, int expected, boolean dynamic) {
        ModelSettings settings =
                settings("batched_add_sub.onnx").maxBatchSize(configured).build();
        try (TestBackend backend = new TestBackend(Map.of("default-max-batch-size", byDefault))) {
            ModelCompletion completion =
                    backend.backend.complete(TestBackend.model(settings)).orElseThrow();

            assertThat(completion.proposedMaxBatchSize()).hasValue(expected);
            assertThat(completion.dynamicBatching()).isEqualTo(dynamic);
            Shape dims = expected == 0 ? Shape.of(-1, 4) : Shape.of(4);
            assertThat(completion.inputs()).contains(fp32("a", dims));
        }
    }

    @Test
    void refusesABatchSizeForAModelThatCannotBatch() {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> complete(settings("add_sub.onnx").maxBatchSize(8)))
                .withMessage("autofill failed for model 'm': model does not support batching while non-zero"
                        + " max_batch_size is specified")
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void fillsOnlyTheListThatIsEmpty() {
        ModelCompletion inputsGiven = complete(settings("batched_add_sub.onnx").input(fp32("a", Shape.of(4))));
        ModelCompletion outputsGiven = complete(settings("batched_add_sub.onnx").output(fp32("sum", Shape.of(4))));

        assertThat(inputsGiven.inputs()).isEmpty();
        assertThat(inputsGiven.outputs()).hasSize(2);
        assertThat(outputsGiven.inputs()).hasSize(2);
        assertThat(outputsGiven.outputs()).isEmpty();
        assertThat(outputsGiven.proposedMaxBatchSize()).hasValue(4);
    }

    @Test
    void changesNothingWhereInputsAndOutputsAreGiven() {
        ModelSettings settings = settings("no_such_file.onnx")
                .input(fp32("a", Shape.of(4)))
                .output(fp32("sum", Shape.of(4)))
                .build();
        try (TestBackend backend = new TestBackend()) {
            assertThat(backend.backend.complete(TestBackend.model(settings))).isEqualTo(Optional.empty());
        }
    }

    @Test
    void givesTensorsWithoutDimensionsOneAndReshapesThemInABatch() {
        assertThat(complete(settings("batched_scalar.onnx")).inputs())
                .containsExactly(fp32("input", Shape.of(1)).withReshape(Shape.SCALAR));
        assertThat(complete(settings("negated_scalar.onnx")).outputs()).containsExactly(fp32("output", Shape.of(1)));
        assertThat(complete(settings("unknown_rank.onnx")).outputs()).containsExactly(fp32("output", Shape.of(1)));
    }

    @Test
    void leavesInputsOutThatHaveAValueInTheModel() {
        assertThat(complete(settings("default_input.onnx")).inputs())
                .extracting(TensorSpec::name)
                .containsExactly("input");
    }

    @Test
    void namesEveryDataType() {
        assertThat(complete(settings("identity_bfloat16.onnx"))
                        .inputs()
                        .getFirst()
                        .type())
                .isEqualTo(DataType.BF16);
        assertThat(complete(settings("identity_string.onnx"))
                        .inputs()
                        .getFirst()
                        .type())
                .isEqualTo(DataType.BYTES);
        assertThat(complete(settings("identity_uint64.onnx"))
                        .outputs()
                        .getFirst()
                        .type())
                .isEqualTo(DataType.UINT64);
    }

    @Test
    void refusesAModelWithAnOutputThatIsNoTensor() {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> complete(settings("sequence.onnx")))
                .withMessage("Unsupported ONNX Type 'ONNX_TYPE_SEQUENCE' for I/O 'output', expected"
                        + " 'ONNX_TYPE_TENSOR'.")
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.UNSUPPORTED);
    }

    @Test
    void passesOnWhyTheModelCannotBeRead() {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> complete(settings("not_a_model.onnx")))
                .withMessageMatching("onnx runtime error 7: .*not_a_model.onnx failed:Protobuf parsing failed.");
    }

    private static ModelCompletion complete(ModelSettingsBuilder settings) {
        try (TestBackend backend = new TestBackend()) {
            return backend.backend.complete(TestBackend.model(settings.build())).orElseThrow();
        }
    }

    private static ModelSettingsBuilder settings(String file) {
        return ModelSettings.builder("m", 1).modelFilename(file);
    }

    private static TensorSpec fp32(String name, Shape dims) {
        return TensorSpec.of(name, DataType.FP32, dims);
    }
}
