package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.List;
import org.junit.jupiter.api.Test;

final class ModelCompletionTest {
    private static final TensorSpec LIMIT =
            TensorSpec.of("LIMIT", DataType.INT32, Shape.of(1)).with(TensorSpec.Trait.OPTIONAL);

    @Test
    void addsTensorAfterTensor() {
        assertThat(ModelCompletion.EMPTY
                        .withMaxBatchSize(8)
                        .withInput("TEXT", DataType.BYTES, 1)
                        .withInput(LIMIT)
                        .withOutput("SCORES", DataType.FP32, Shape.VARIABLE, 4)
                        .withDynamicBatching()
                        .withDecoupled(false))
                .isEqualTo(ModelCompletion.EMPTY
                        .withMaxBatchSize(8)
                        .withInputs(List.of(TensorSpec.of("TEXT", DataType.BYTES, Shape.of(1)), LIMIT))
                        .withOutputs(List.of(TensorSpec.of("SCORES", DataType.FP32, Shape.of(Shape.VARIABLE, 4))))
                        .withDynamicBatching()
                        .withDecoupled(false));
    }

    @Test
    void completionsThatDifferAreNotEqual() {
        List<ModelCompletion> all = List.of(
                ModelCompletion.EMPTY,
                ModelCompletion.EMPTY.withMaxBatchSize(0),
                ModelCompletion.EMPTY.withMaxBatchSize(1),
                ModelCompletion.EMPTY.withInput(LIMIT),
                ModelCompletion.EMPTY.withInput("LIMIT", DataType.INT32, 1),
                ModelCompletion.EMPTY.withOutput(LIMIT),
                ModelCompletion.EMPTY.withDynamicBatching(),
                ModelCompletion.EMPTY.withDecoupled(true),
                ModelCompletion.EMPTY.withDecoupled(false));

        assertThat(all).doesNotHaveDuplicates();
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
                .isThrownBy(() -> completion.withMaxBatchSize(-1))
                .withMessage("size: -1 (expected: >= 0)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> completion.withInput("A", DataType.FP32, -2))
                .withMessage("dims: [-2] (expected: each >= -1)");
    }
}
