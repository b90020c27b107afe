package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.natives.Completions;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeModelContext;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Configurations that a module completes, and those that it cannot. */
class CompletionTest {
    private static final String TRACE = """
            def forward(self, image: Tensor, ids: Tensor) -> Tuple[Tensor, Tensor]:
                return image.sum([2, 3]), ids
            """;

    private static final String TEXT = """
            def forward(self, words: List[str]) -> Tuple[Tensor, List[str]]:
                lengths: List[float] = []
                for word in words:
                    lengths.append(float(len(word)))
                return torch.tensor(lengths), words
            """;

    @TempDir
    private Path directory;

    private CheckedBackend test;

    @BeforeEach
    void open() {
        test = new CheckedBackend(directory);
    }

    @AfterEach
    void close() {
        test.close();
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1);
    }

    private static Tensor image() {
        return torch.ones(2, 3, 8, 6);
    }

    private static Tensor ids() {
        return torch.ones(2, 5).toType(torch.ScalarType.Long);
    }

    private List<String> warnings() {
        return test.log().stream().filter(line -> line.startsWith("WARNING ")).toList();
    }

    private static ModelSettingsBuilder with(ModelSettingsBuilder settings, ModelCompletion completion) {
        completion.inputs().forEach(settings::input);
        completion.outputs().forEach(settings::output);
        return settings;
    }

    @Test
    void traceWithoutBatching() {
        ScriptFiles.trace(directory, TRACE, image(), ids());

        ModelCompletion completion = test.complete(settings()).orElseThrow();

        assertThat(completion.inputs())
                .containsExactly(
                        TensorSpec.of("image", DataType.FP32, Shape.of(2, 3, 8, 6)),
                        TensorSpec.of("ids", DataType.INT64, Shape.of(2, 5)));
        assertThat(completion.outputs())
                .containsExactly(
                        TensorSpec.of("OUTPUT__0", DataType.FP32, Shape.of(2, 3)),
                        TensorSpec.of("OUTPUT__1", DataType.INT64, Shape.of(2, 5)));
        assertThat(completion.proposedMaxBatchSize()).isEmpty();
        test.load(with(settings(), completion));
        assertThat(warnings()).isEmpty();
    }

    @Test
    void traceWithBatching() {
        ScriptFiles.trace(directory, TRACE, image(), ids());

        ModelCompletion completion = test.complete(settings().maxBatchSize(8)).orElseThrow();

        assertThat(completion.inputs())
                .containsExactly(
                        TensorSpec.of("image", DataType.FP32, Shape.of(3, 8, 6)),
                        TensorSpec.of("ids", DataType.INT64, Shape.of(5)));
        assertThat(completion.outputs())
                .containsExactly(
                        TensorSpec.of("OUTPUT__0", DataType.FP32, Shape.of(3)),
                        TensorSpec.of("OUTPUT__1", DataType.INT64, Shape.of(5)));
        test.load(with(settings().maxBatchSize(8), completion));
    }

    @Test
    void batchesOfNumbers() {
        ScriptFiles.trace(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x\n", torch.ones(4));

        ModelCompletion completion = test.complete(settings().maxBatchSize(8)).orElseThrow();

        assertThat(completion.inputs())
                .containsExactly(TensorSpec.of("x", DataType.FP32, Shape.of(1)).withReshape(Shape.SCALAR));
        test.load(with(settings().maxBatchSize(8), completion));
    }

    @Test
    void scalarHasNoBatch() {
        ScriptFiles.trace(
                directory, "def forward(self, x: Tensor) -> Tensor:\n    return x\n", torch.ones(new long[0]));

        BackendException refusal = test.refusalToComplete(settings().maxBatchSize(8));

        assertThat(refusal)
                .hasMessage("autofill failed for model 'm': tensor 'x' has no dimension for a batch (expected:"
                        + " max_batch_size 0)");
        assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(test.complete(settings()).orElseThrow().inputs())
                .containsExactly(TensorSpec.of("x", DataType.FP32, Shape.of(1)));
    }

    @Test
    void outputsAlone() {
        ScriptFiles.trace(directory, TRACE, image(), ids());
        ModelSettingsBuilder settings = settings()
                .input(TensorSpec.of("ids__1", DataType.INT64, Shape.of(-1, -1)))
                .input(TensorSpec.of("image__0", DataType.FP32, Shape.of(-1, -1, -1, -1)));

        ModelCompletion completion = test.complete(settings).orElseThrow();

        assertThat(completion.inputs()).isEmpty();
        assertThat(completion.outputs()).hasSize(2);
    }

    @Test
    void inputsAlone() {
        ScriptFiles.trace(directory, TRACE, image(), ids());

        ModelCompletion completion = test.complete(
                        settings().output(TensorSpec.of("sum", DataType.FP32, Shape.of(-1, 3))))
                .orElseThrow();

        assertThat(completion.inputs()).hasSize(2);
        assertThat(completion.outputs()).isEmpty();
    }

    @Test
    void nothingIsMissing() {
        ModelSettingsBuilder settings = settings()
                .input(TensorSpec.of("x", DataType.FP32, Shape.of(1)))
                .output(TensorSpec.of("y", DataType.FP32, Shape.of(1)));

        assertThat(test.complete(settings)).isEmpty(); // there is no file
        assertThat(test.log())
                .containsExactly("INFO skipping model configuration auto-complete for 'm': inputs and outputs already"
                        + " specified");
    }

    @Test
    void texts() {
        ScriptFiles.write(directory, TEXT);

        ModelCompletion completion = test.complete(settings()).orElseThrow();

        assertThat(completion.inputs())
                .containsExactly(TensorSpec.of("words", DataType.BYTES, Shape.of(Shape.VARIABLE)));
        assertThat(completion.outputs())
                .element(1)
                .isEqualTo(TensorSpec.of("OUTPUT__1", DataType.BYTES, Shape.of(Shape.VARIABLE)));
        test.load(with(settings(), completion));
    }

    @Test
    void batchesOfTexts() {
        ScriptFiles.write(directory, TEXT);

        ModelCompletion completion = test.complete(settings().maxBatchSize(4)).orElseThrow();

        TensorSpec words = TensorSpec.of("words", DataType.BYTES, Shape.of(1)).withReshape(Shape.SCALAR);
        assertThat(completion.inputs()).containsExactly(words);
        test.load(with(settings().maxBatchSize(4), completion));
    }

    @Test
    void keysOfADictionary() {
        ScriptFiles.trace(
                directory,
                "def forward(self, x: Tensor) -> Dict[str, Tensor]:\n    return {'b': x.int(), 'a': x}\n",
                torch.ones(2));

        ModelCompletion completion = test.complete(settings()).orElseThrow();

        assertThat(completion.outputs())
                .containsExactly(
                        TensorSpec.of("b", DataType.INT32, Shape.of(2)),
                        TensorSpec.of("a", DataType.FP32, Shape.of(2)));
        test.load(with(settings(), completion));
    }

    @Test
    void scriptWithoutExamplesIsNotCompleted() {
        ScriptFiles.write(directory, TRACE);

        BackendException refusal = test.refusalToComplete(settings());

        String schema = "forward(Tensor image, Tensor ids) -> (Tensor, Tensor)";
        String reason = "the types and shapes of tensors are not in the file (expected: input and output in the"
                + " configuration; or a trace of PyTorch 2 or later, which has its inputs)";
        assertThat(warnings()).containsExactly("WARNING not completed: " + schema + ": " + reason);
        assertThat(refusal)
                .hasMessage("unable to load model 'm', configuration expects 0 inputs, model provides 2: " + schema
                        + "; " + reason);
        assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void sequencesAreNotCompleted() {
        ScriptFiles.trace(directory, TRACE, image(), ids());

        BackendException refusal = test.refusalToComplete(settings()
                .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(1))));

        assertThat(refusal)
                .message()
                .startsWith("unable to load model 'm', configuration expects 0 inputs, model provides 2: ");
        assertThat(warnings()).hasSize(1);
    }

    @Test
    void derivedInputsAreInputs() {
        ModelSettingsBuilder settings = settings()
                .batchInput(new BatchInput(BatchInput.Kind.ELEMENT_COUNT, List.of("n"), DataType.INT32, "x"))
                .output(TensorSpec.of("y", DataType.FP32, Shape.of(1)));

        assertThat(Completions.isNeeded(new FakeModelContext(settings.build(), Path.of("m"))))
                .isFalse();
    }

    @Test
    void failingScript() {
        ScriptFiles.trace(
                directory, "def forward(self, x: Tensor) -> Tensor:\n    return x.reshape([7])\n", torch.ones(2, 3));

        BackendException refusal = test.refusalToComplete(settings());

        assertThat(refusal)
                .message()
                .startsWith("autofill failed for model 'm': the script fails with tensors of ones (expected: output in"
                        + " the configuration): ")
                .contains("x.reshape([7])", "shape '[7]' is invalid for input of size 6")
                .doesNotContain("frame #");
    }

    @Test
    void resultThatNoClientKnows() {
        ScriptFiles.trace(
                directory,
                "def forward(self, x: Tensor) -> Tuple[Tensor, Optional[Tensor]]:\n    return x, None\n",
                torch.ones(2));

        assertThat(test.refusalToComplete(settings()))
                .hasMessage("autofill failed for model 'm': value 1 of the result is no tensor of a type of TorchScript"
                        + " that clients know: None");
    }

    @ParameterizedTest
    @CsvSource({"INT64, FP32", "FP64, FP32"})
    void otherTypeThanThatOfTheTrace(DataType configured, DataType traced) {
        ScriptFiles.trace(
                directory,
                "def forward(self, x: Tensor) -> Tensor:\n    return torch.matmul(x, torch.ones([3, 2]))\n",
                torch.ones(2, 3));

        BackendException refusal = test.refusal(settings()
                .input(TensorSpec.of("x", configured, Shape.of(-1, 3)))
                .output(TensorSpec.of("y", DataType.FP32, Shape.of(-1, 2))));

        assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(refusal)
                .message()
                .startsWith("unable to load model 'm', configuration expects datatype " + configured.configName()
                        + " for input 'x', model provides " + traced.configName() + ": ")
                .contains("torch.matmul(x, torch.ones([3, 2]))");
    }

    @Test
    void otherTypeThatATraceComputesWith() {
        ScriptFiles.trace(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x + 1\n", torch.ones(2, 3));

        test.load(settings()
                .input(TensorSpec.of("x", DataType.INT64, Shape.of(-1, 3)))
                .output(TensorSpec.of("y", DataType.INT64, Shape.of(-1, 3))));
    }

    private static ModelSettingsBuilder settings(Shape input, DataType output) {
        return settings()
                .input(TensorSpec.of("x", DataType.FP32, input))
                .output(TensorSpec.of("OUTPUT__0", output, Shape.of(Shape.VARIABLE, Shape.VARIABLE)));
    }

    /** A trace may compute with other shapes too, so this is no error. */
    @Test
    void otherShapeThanThatOfTheTrace() {
        ScriptFiles.trace(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x + 1\n", torch.ones(2, 3));

        test.load(settings(Shape.of(7), DataType.FP32));

        assertThat(warnings())
                .singleElement()
                .asString()
                .contains("'x'")
                .containsAnyOf("[2,3]", "[2, 3]")
                .contains("[7]");
    }

    @Test
    void shapeOfTheTrace() {
        ScriptFiles.trace(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x + 1\n", torch.ones(2, 3));

        test.load(settings(Shape.of(2, 3), DataType.FP32));
        test.load(settings(Shape.of(Shape.VARIABLE, 3), DataType.FP32));
        test.load(settings(Shape.of(Shape.VARIABLE, Shape.VARIABLE), DataType.FP32));
        test.load(settings()
                .maxBatchSize(8)
                .input(TensorSpec.of("x", DataType.FP32, Shape.of(3)))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, Shape.of(3))));

        assertThat(warnings()).isEmpty();
    }

    @Test
    void otherTypeThanThatOfTheResult() {
        ScriptFiles.trace(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x + 1\n", torch.ones(2, 3));

        BackendException refusal = test.refusal(settings(Shape.of(2, 3), DataType.INT64));

        assertThat(refusal).isNotNull();
        assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(refusal).message().contains("TYPE_INT64", "'OUTPUT__0'", "TYPE_FP32");
    }

    /** It fails for its values, not for their types. */
    @Test
    void otherTypeForAScriptThatFailsWithOnes() {
        ScriptFiles.trace(directory, """
                def forward(self, x: Tensor) -> Tensor:
                    assert bool(x.sum() != 6), "ones"
                    return x + 1
                """, torch.ones(2, 3));

        test.load(settings()
                .input(TensorSpec.of("x", DataType.INT64, Shape.of(-1, 3)))
                .output(TensorSpec.of("OUTPUT__0", DataType.INT64, Shape.of(-1, 3))));
    }

    @Test
    void trialsLeaveTheModuleAsItIs() {
        ScriptFiles.write(directory, """
                def forward(self, x: List[str]) -> Tensor:
                    self.count.add_(1)
                    return self.count.clone()
                """, module -> module.register_buffer("count", torch.zeros(1)));
        ModelCompletion completion = test.complete(settings()).orElseThrow();
        ModelSettingsBuilder settings = with(settings(), completion);

        assertThat(test.run(
                                settings,
                                1,
                                java.util.Map.of("x", dev.nereid.spi.Tensor.ofStrings(Shape.of(1), List.of("a"))))
                        .get("OUTPUT__0")
                        .floats())
                .containsExactly(1);
    }

    @Test
    void noFile() {
        BackendException refusal = test.refusalToComplete(settings());

        assertThat(refusal).hasMessage("unable to find 'm/1/model.pt' for model instance 'm'");
        assertThat(refusal.code()).isEqualTo(ErrorCode.UNAVAILABLE);
    }
}
