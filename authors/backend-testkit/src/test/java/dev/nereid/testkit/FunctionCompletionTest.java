package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import dev.nereid.spi.function.AsyncTensorFunction;
import dev.nereid.spi.function.TensorFunction;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what functions say of their models: it completes configurations, and refuses those that contradict it. */
final class FunctionCompletionTest {
    private static final TensorSpec TEXT = TensorSpec.of("TEXT", DataType.BYTES, Shape.of(1));
    private static final TensorSpec LIMIT =
            TensorSpec.of("LIMIT", DataType.INT32, Shape.of(1)).with(TensorSpec.Trait.OPTIONAL);
    private static final TensorSpec SCORES = TensorSpec.of("SCORES", DataType.FP32, Shape.of(Shape.VARIABLE, 4));
    private static final ModelCompletion SAID = ModelCompletion.EMPTY
            .withProposedMaxBatchSize(8)
            .withMaxBatchSizeLimit(8)
            .withInputs(List.of(TEXT, LIMIT))
            .withOutputs(List.of(SCORES))
            .withDynamicBatching();

    private record Function(ModelCompletion completion) implements TensorFunction {
        @Override
        public String name() {
            return "scores";
        }

        @Override
        public void apply(InferenceRequest request, ModelContext model) {
            throw new AssertionError("not called");
        }
    }

    private record AsyncFunction(ModelCompletion completion) implements AsyncTensorFunction {
        @Override
        public String name() {
            return "scores";
        }

        @Override
        public CompletionStage<?> apply(InferenceRequest request, ModelContext model) {
            return CompletableFuture.failedStage(new AssertionError("not called"));
        }
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1);
    }

    private static ModelCompletion complete(BackendProvider function, ModelSettingsBuilder settings) {
        try (Backend backend = function.create(new FakeBackendContext(Map.of(), Path.of("cache"), 1))) {
            return backend.complete(new FakeModelContext(settings.build(), Path.of("m")))
                    .orElseThrow();
        }
    }

    private static void refuses(ModelSettingsBuilder settings, String message) {
        for (BackendProvider function : List.of(new Function(SAID), new AsyncFunction(SAID))) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> complete(function, settings))
                    .withMessage("model 'm', backend 'scores': " + message)
                    .returns(ErrorCode.INVALID_ARGUMENT, BackendException::code);
            try (Backend backend = function.create(new FakeBackendContext(Map.of(), Path.of("cache"), 1))) {
                assertThatExceptionOfType(BackendException.class)
                        .as("load without completion")
                        .isThrownBy(() -> backend.load(new FakeModelContext(settings.build(), Path.of("m"))))
                        .withMessageEndingWith(message);
            } catch (BackendException e) {
                throw new AssertionError(e);
            }
        }
    }

    @Test
    void completesAnEmptyConfiguration() {
        for (BackendProvider function : List.of(new Function(SAID), new AsyncFunction(SAID))) {
            ModelCompletion found = complete(function, settings());

            assertThat(found.proposedMaxBatchSize()).hasValue(8);
            assertThat(found.maxBatchSizeLimit()).hasValue(8);
            assertThat(found.inputs()).containsExactly(TEXT, LIMIT);
            assertThat(found.outputs()).containsExactly(SCORES);
            assertThat(found.dynamicBatching()).isTrue();
        }
    }

    @Test
    void keepsWhatIsConfigured() {
        ModelCompletion found = complete(
                new Function(SAID),
                settings()
                        .maxBatchSize(4)
                        .input(TEXT)
                        .output(TensorSpec.of("SCORES", DataType.FP32, Shape.of(2, Shape.VARIABLE))));

        assertThat(found.maxBatchSizeLimit()).hasValue(8);
        assertThat(found.inputs()).isEmpty();
        assertThat(found.outputs()).isEmpty();
    }

    @Test
    void completesNothingThatIsNotSaid() {
        try (Backend backend =
                new Function(ModelCompletion.EMPTY).create(new FakeBackendContext(Map.of(), Path.of("cache"), 1))) {
            assertThat(backend.complete(new FakeModelContext(settings().build(), Path.of("m"))))
                    .isEmpty();
        }
        ModelCompletion batching = complete(
                new Function(ModelCompletion.EMPTY.withDynamicBatching()),
                settings().maxBatchSize(64).input(TensorSpec.of("ANY", DataType.INT8, Shape.of(1))));

        assertThat(batching.proposedMaxBatchSize()).isEmpty();
        assertThat(batching.maxBatchSizeLimit()).isEmpty();
        assertThat(batching.dynamicBatching()).isTrue();
    }

    @Test
    void leavesInputsOfTheServerOut() {
        TensorSpec start = TensorSpec.of("START", DataType.INT32, Shape.of(1));
        TensorSpec sum = TensorSpec.of("SUM_IN", DataType.FP32, Shape.of(1));
        TensorSpec counts = TensorSpec.of("COUNTS", DataType.INT32, Shape.of(1));
        Function function = new Function(ModelCompletion.EMPTY.withInputs(List.of(TEXT, start, sum, counts)));
        SequenceBatching sequences = SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(1))
                .with(new ControlInput(ControlInput.Kind.SEQUENCE_START, "START", DataType.INT32))
                .with(StateSpec.of("SUM_IN", "SUM_OUT", DataType.FP32, Shape.of(1)));
        BatchInput derived = new BatchInput(BatchInput.Kind.ELEMENT_COUNT, List.of("COUNTS"), DataType.INT32, "TEXT");

        assertThat(complete(function, settings().sequenceBatching(sequences).batchInput(derived))
                        .inputs())
                .containsExactly(TEXT);
        assertThat(complete(
                                function,
                                settings()
                                        .sequenceBatching(sequences)
                                        .batchInput(derived)
                                        .input(TEXT))
                        .inputs())
                .isEmpty();
    }

    @Test
    void refusesContradictions() {
        refuses(settings().maxBatchSize(9), "max_batch_size: 9 (expected: at most 8)");
        refuses(
                settings().input(TensorSpec.of("TXT", DataType.BYTES, Shape.of(1))),
                "input 'TXT': unknown (expected: one of [TEXT, LIMIT])");
        refuses(
                settings().input(TensorSpec.of("TEXT", DataType.FP32, Shape.of(1))),
                "input 'TEXT': data_type: TYPE_FP32 (expected: TYPE_STRING)");
        refuses(
                settings().input(LIMIT),
                "input 'TEXT': missing (found: [LIMIT]; expected: all of [TEXT, LIMIT], or none)");
        refuses(
                settings().output(TensorSpec.of("SCORES", DataType.FP32, Shape.of(2, 5))),
                "output 'SCORES': dims: [2,5] (expected: [-1,4])");
        refuses(
                settings().output(TensorSpec.of("SCORES", DataType.FP32, Shape.of(4))),
                "output 'SCORES': dims: [4] (expected: [-1,4])");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void acceptsBatchesUpToTheLargest(int size) {
        assertThat(complete(new Function(SAID), settings().maxBatchSize(size)).maxBatchSizeLimit())
                .hasValue(8);
    }

    @Test
    void leavesTheTransactionPolicyOut() {
        Function decoupled = new Function(SAID.withDecoupled(true));

        assertThat(complete(decoupled, settings()).decoupled()).isEmpty();
    }

    @Test
    void acceptsAnyBatchWithoutALimit() {
        Function proposing = new Function(ModelCompletion.EMPTY.withProposedMaxBatchSize(8));

        assertThat(complete(proposing, settings().maxBatchSize(9))).isEqualTo(proposing.completion());
    }

    /** The server completes such tensors where a configuration turns batching off. */
    @Test
    void acceptsTensorsWithTheirBatchDimensionWithoutBatching() {
        TensorSpec whole = TensorSpec.of("TEXT", DataType.BYTES, Shape.of(Shape.VARIABLE, 1));

        assertThat(complete(new Function(SAID), settings().input(whole)).inputs())
                .isEmpty();
        refuses(settings().maxBatchSize(1).input(whole), "input 'TEXT': dims: [-1,1] (expected: [1])");
        refuses(
                settings().input(TensorSpec.of("TEXT", DataType.BYTES, Shape.of(2, 2))),
                "input 'TEXT': dims: [2,2] (expected: [1])");
    }
}
