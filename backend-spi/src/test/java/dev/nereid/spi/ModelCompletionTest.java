package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

final class ModelCompletionTest {
    private static final TensorSpec LIMIT =
            TensorSpec.of("LIMIT", DataType.INT32, Shape.of(1)).with(TensorSpec.Trait.OPTIONAL);

    @Test
    void addsTensorAfterTensor() {
        assertThat(ModelCompletion.EMPTY
                        .withProposedMaxBatchSize(8)
                        .withMaxBatchSizeLimit(16)
                        .withInput("TEXT", DataType.BYTES, 1)
                        .withInput(LIMIT)
                        .withOutput("SCORES", DataType.FP32, Shape.VARIABLE, 4)
                        .withDynamicBatching()
                        .withDecoupled(false))
                .isEqualTo(ModelCompletion.EMPTY
                        .withProposedMaxBatchSize(8)
                        .withMaxBatchSizeLimit(16)
                        .withInputs(List.of(TensorSpec.of("TEXT", DataType.BYTES, Shape.of(1)), LIMIT))
                        .withOutputs(List.of(TensorSpec.of("SCORES", DataType.FP32, Shape.of(Shape.VARIABLE, 4))))
                        .withDynamicBatching()
                        .withDecoupled(false));
    }

    @Test
    void completionsThatDifferAreNotEqual() {
        List<ModelCompletion> all = List.of(
                ModelCompletion.EMPTY,
                ModelCompletion.EMPTY.withProposedMaxBatchSize(0),
                ModelCompletion.EMPTY.withProposedMaxBatchSize(1),
                ModelCompletion.EMPTY.withMaxBatchSizeLimit(0),
                ModelCompletion.EMPTY.withMaxBatchSizeLimit(1),
                ModelCompletion.EMPTY.withInput(LIMIT),
                ModelCompletion.EMPTY.withInput("LIMIT", DataType.INT32, 1),
                ModelCompletion.EMPTY.withOutput(LIMIT),
                ModelCompletion.EMPTY.withDynamicBatching(),
                ModelCompletion.EMPTY.withDecoupled(true),
                ModelCompletion.EMPTY.withDecoupled(false));

        assertThat(all).doesNotHaveDuplicates();
    }

    @Test
    void refusesAProposalBeyondTheLimit() {
        ModelCompletion proposed = ModelCompletion.EMPTY.withProposedMaxBatchSize(9);
        ModelCompletion limited = ModelCompletion.EMPTY.withMaxBatchSizeLimit(8);

        for (ThrowingCallable both : List.<ThrowingCallable>of(
                () -> proposed.withMaxBatchSizeLimit(8), () -> limited.withProposedMaxBatchSize(9))) {
            assertThatIllegalArgumentException()
                    .isThrownBy(both)
                    .withMessage("proposedMaxBatchSize: 9 (expected: at most maxBatchSizeLimit: 8)");
        }
        assertThat(limited.withProposedMaxBatchSize(8).proposedMaxBatchSize()).hasValue(8);
    }

    @Test
    void refusesWhatNoModelHas() {
        ModelCompletion completion = ModelCompletion.EMPTY.withInput(LIMIT).withOutput(LIMIT);

        assertThatIllegalArgumentException()
                .isThrownBy(() -> completion.withInput("LIMIT", DataType.FP32, 2))
                .withMessage("input 'LIMIT': added twice (expected: each input once)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> completion.withOutput(LIMIT))
                .withMessage("output 'LIMIT': added twice (expected: each output once)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> completion.withProposedMaxBatchSize(-1))
                .withMessage("proposedMaxBatchSize: -1 (expected: >= 0)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> completion.withMaxBatchSizeLimit(Integer.MIN_VALUE))
                .withMessage("maxBatchSizeLimit: -2147483648 (expected: >= 0)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> completion.withInput("A", DataType.FP32, -2))
                .withMessage("dims: [-2] (expected: each >= -1)");
    }
}
