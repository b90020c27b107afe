package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.List;
import org.junit.jupiter.api.Test;

final class ModelCompletionBuilderTest {
    private static final TensorSpec LIMIT =
            TensorSpec.of("LIMIT", DataType.INT32, Shape.of(1)).with(TensorSpec.Trait.OPTIONAL);

    @Test
    void buildsWhatTheMethodsOfCompletionsMake() {
        assertThat(ModelCompletion.builder()
                        .maxBatchSize(8)
                        .input("TEXT", DataType.BYTES, 1)
                        .input(LIMIT)
                        .output("SCORES", DataType.FP32, Shape.VARIABLE, 4)
                        .dynamicBatching()
                        .decoupled(false)
                        .build())
                .isEqualTo(ModelCompletion.EMPTY
                        .withMaxBatchSize(8)
                        .withInputs(List.of(TensorSpec.of("TEXT", DataType.BYTES, Shape.of(1)), LIMIT))
                        .withOutputs(List.of(TensorSpec.of("SCORES", DataType.FP32, Shape.of(Shape.VARIABLE, 4))))
                        .withDynamicBatching()
                        .withDecoupled(false));
        assertThat(ModelCompletion.builder().build()).isEqualTo(ModelCompletion.EMPTY);
    }

    @Test
    void completionsThatDifferAreNotEqual() {
        List<ModelCompletion> all = List.of(
                ModelCompletion.EMPTY,
                ModelCompletion.builder().maxBatchSize(0).build(),
                ModelCompletion.builder().maxBatchSize(1).build(),
                ModelCompletion.builder().input(LIMIT).build(),
                ModelCompletion.builder().input("LIMIT", DataType.INT32, 1).build(),
                ModelCompletion.builder().output(LIMIT).build(),
                ModelCompletion.builder().dynamicBatching().build(),
                ModelCompletion.builder().decoupled(true).build(),
                ModelCompletion.builder().decoupled(false).build());

        assertThat(all).doesNotHaveDuplicates();
    }

    @Test
    void refusesWhatNoModelHas() {
        ModelCompletionBuilder builder = ModelCompletion.builder().input(LIMIT).output(LIMIT);

        assertThatIllegalArgumentException()
                .isThrownBy(() -> builder.input("LIMIT", DataType.FP32, 2))
                .withMessage("input 'LIMIT': added twice (expected: each input once)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> builder.output(LIMIT))
                .withMessage("output 'LIMIT': added twice (expected: each output once)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> builder.maxBatchSize(-1))
                .withMessage("maxBatchSize: -1 (expected: >= 0)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> builder.input("A", DataType.FP32, -2))
                .withMessage("dims: [-2] (expected: each >= -1)");
    }
}
