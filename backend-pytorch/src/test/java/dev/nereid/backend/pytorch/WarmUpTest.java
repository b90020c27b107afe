package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Executions before the first request: none is seen afterwards, and none fails a load. */
class WarmUpTest {
    private static final Shape ONE = Shape.of(1);

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
        ScriptFiles.library().executor(true); // as it is at first
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, ONE))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, ONE));
    }

    private float run(ModelInstance instance, float x) {
        return test.run(instance, settings(), 1, Map.of("x", Tensor.ofFloats(ONE, x)))
                .get("OUTPUT__0")
                .floats()[0];
    }

    private boolean warmUpFailed() {
        return test.log().stream().anyMatch(line -> line.startsWith("DEBUG not executed before the first request: "));
    }

    @Test
    void bufferIsNotChanged() {
        ScriptFiles.write(directory, """
                def forward(self, x: Tensor) -> Tensor:
                    self.count.add_(x)
                    return self.count.clone()
                """, module -> module.register_buffer("count", torch.zeros(1)));
        ModelInstance instance = test.instance(test.load(settings()));

        assertThat(run(instance, 5)).isEqualTo(5);
        assertThat(run(instance, 5)).isEqualTo(10);
    }

    @Test
    void attributeIsNotChanged() {
        ScriptFiles.write(directory, """
                def forward(self, x: Tensor) -> Tensor:
                    self.last = self.last + x
                    return self.last
                """, module -> module.register_buffer("last", torch.zeros(1)));
        ModelInstance instance = test.instance(test.load(settings()));

        assertThat(run(instance, 5)).isEqualTo(5);
        assertThat(run(instance, 5)).isEqualTo(10);
    }

    @Test
    @Timeout(60)
    void whileIsNotTried() {
        ScriptFiles.write(directory, """
                def forward(self, x: Tensor) -> Tensor:
                    while bool(x.sum() == 1):
                        x = x * 1
                    return x
                """);

        assertThat(run(test.instance(test.load(settings())), 3)).isEqualTo(3);
        assertThat(warmUpFailed()).isFalse();
    }

    @Test
    @Timeout(60)
    void whileInAFunctionIsNotTried() {
        ScriptFiles.write(directory, """
                def inner(self, x: Tensor) -> Tensor:
                    if bool(x.sum() > 0):
                        while bool(x.sum() == 1):
                            x = x * 1
                    return x

                def forward(self, x: Tensor) -> Tensor:
                    return self.inner(x)
                """);

        assertThat(run(test.instance(test.load(settings())), 3)).isEqualTo(3);
    }

    /** The script fails in its first round with tensors of ones: that is how a trial shows. */
    private void writeLoop(String rounds) {
        ScriptFiles.write(directory, """
                def forward(self, x: Tensor) -> Tensor:
                    for i in range(ROUNDS):
                        assert bool(x.sum() != 1), "tried"
                        x = x * 1
                    return x
                """.replace("ROUNDS", rounds));
    }

    @ParameterizedTest
    @ValueSource(strings = {"int(x.sum()) * 1000000000", "2000000000", "int(x.sum())", "x.size(0) * 2000000000"})
    void forWithManyRoundsIsNotTried(String rounds) {
        writeLoop(rounds);

        test.load(settings());

        assertThat(warmUpFailed()).isFalse();
    }

    @Test
    void forOverTheSizeOfAnInputIsTried() {
        writeLoop("x.size(0)");

        ModelInstance instance = test.instance(test.load(settings()));

        assertThat(warmUpFailed()).isTrue();
        assertThat(run(instance, 3)).isEqualTo(3);
    }

    @Test
    void forOverAListOfTextsIsTried() {
        ScriptFiles.write(directory, """
                def forward(self, x: List[str]) -> Tensor:
                    sum = 0
                    for text in x:
                        assert len(text) > 0, "tried"
                        sum += len(text)
                    return torch.tensor([sum])
                """);

        test.load(ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.BYTES, ONE))
                .output(TensorSpec.of("OUTPUT__0", DataType.INT64, ONE)));

        assertThat(warmUpFailed()).isTrue();
    }

    /** Without optimization a module is not frozen; its code is the same. */
    @Test
    void traceWithoutLoopsIsCompletedWithoutOptimization() {
        ScriptFiles.trace(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x + 1\n", torch.ones(2, 3));
        test.with("DISABLE_OPTIMIZED_EXECUTION", "true");

        ModelCompletion completion =
                test.complete(ModelSettings.builder("m", 1)).orElseThrow();

        assertThat(completion.outputs()).containsExactly(TensorSpec.of("OUTPUT__0", DataType.FP32, Shape.of(2, 3)));
    }

    @Test
    void failureIsNone() {
        ScriptFiles.write(directory, """
                def forward(self, x: Tensor) -> Tensor:
                    assert bool(x.sum() != 1), "one"
                    return x
                """);

        assertThat(run(test.instance(test.load(settings())), 3)).isEqualTo(3);
        assertThat(warmUpFailed()).isTrue();
    }

    @Test
    void tooLargeIsNotTried() {
        ScriptFiles.write(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x\n");

        test.load(ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, Shape.of(1L << 40)))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, Shape.of(1L << 40))));

        assertThat(warmUpFailed()).isFalse();
    }

    @Test
    void productOfDimensionsBeyondALong() {
        ScriptFiles.write(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x\n");
        Shape huge = Shape.of(1L << 31, 1L << 31, 1L << 31, 1L << 31);

        test.load(ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, huge))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, huge)));
    }

    @Test
    void textsAreEmptyOnes() {
        ScriptFiles.write(directory, """
                def forward(self, x: List[str]) -> int:
                    return int(x[0])
                """);

        test.load(ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.BYTES, ONE))
                .output(TensorSpec.of("OUTPUT__0", DataType.INT64, ONE)));

        assertThat(warmUpFailed()).isTrue();
    }

    @Test
    void controlsAndStates() {
        ScriptFiles.write(directory, """
                def forward(self, x: Tensor, start: Tensor, state: Tensor) -> Tuple[Tensor, Tensor]:
                    assert x.shape == state.shape and start.shape[0] == x.shape[0]
                    return x + state, x + state
                """);
        SequenceBatching sequences = SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(1))
                .with(new ControlInput(ControlInput.Kind.SEQUENCE_START, "START__1", DataType.FP32))
                .with(StateSpec.of("STATE__2", "NEXT__1", DataType.FP32, Shape.of(Shape.VARIABLE)));

        test.load(ModelSettings.builder("m", 1)
                .maxBatchSize(4)
                .input(TensorSpec.of("x__0", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .sequenceBatching(sequences));

        assertThat(warmUpFailed()).isFalse();
    }

    /** The executor without profiling knows the types of what it was given first, and the graph shows them. */
    @ParameterizedTest
    @CsvSource({"true, false", "false, true"})
    void executorIsChosenBeforeTheFirstExecution(String isEnabled, boolean hasTypes) {
        ScriptFiles.write(directory, "def forward(self, x: Tensor) -> Tensor:\n    return torch.sigmoid(x) * x + 1\n");
        ModelInstance instance =
                test.instance(test.with("ENABLE_JIT_EXECUTOR", isEnabled).load(settings()));

        assertThat(run(instance, 0)).isEqualTo(1);

        assertThat(torch.getExecutorMode().get()).isEqualTo(Boolean.parseBoolean(isEnabled));
        assertThat(torch.lastExecutedOptimizedGraph().toString().contains("Float("))
                .isEqualTo(hasTypes);
    }

    @Test
    void dictionary() {
        ScriptFiles.write(directory, """
                def forward(self, x: Dict[str, Tensor]) -> Tensor:
                    assert len(x) == 2
                    return x['a'] / x['b']
                """);

        test.load(ModelSettings.builder("m", 1)
                .input(TensorSpec.of("a", DataType.FP32, ONE))
                .input(TensorSpec.of("b", DataType.FP32, ONE))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, ONE)));

        assertThat(warmUpFailed()).isFalse();
    }
}
