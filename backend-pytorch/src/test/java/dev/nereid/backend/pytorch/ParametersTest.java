package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.pytorch.presets.TorchLibrary;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Parameters of a model: their values, their effects, and what the log says of them. */
class ParametersTest {
    private static final Shape ONE = Shape.of(1);

    private static final String STATELESS = """
            def forward(self, x: Tensor) -> Tensor:
                return x + 1
            """;

    private static final String COUNTER = """
            def forward(self, x: Tensor) -> Tensor:
                self.count.add_(x)
                return self.count.clone()
            """;

    @TempDir
    private Path directory;

    private CheckedBackend test;

    @BeforeEach
    void open() {
        ScriptFiles.write(directory, STATELESS);
        test = new CheckedBackend(directory);
    }

    @AfterEach
    void close() {
        test.close();
        TorchLibrary library = ScriptFiles.library(); // as they are at first
        library.profiling(true);
        library.executor(true);
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, ONE))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, ONE));
    }

    private float next(dev.nereid.spi.ModelInstance instance) {
        return test.run(instance, settings(), 1, Map.of("x", Tensor.ofFloats(ONE, 1)))
                .get("OUTPUT__0")
                .floats()[0];
    }

    private void writeCounter() {
        ScriptFiles.write(directory, COUNTER, module -> module.register_buffer("count", torch.zeros(1)));
    }

    private List<String> linesAboutParameters() {
        return test.log().stream()
                .filter(line -> line.contains(" for model instance 'm'"))
                .toList();
    }

    @Test
    void linesByDefault() {
        Model model = test.load(settings(), 2);
        test.instance(model);
        test.instance(model);

        assertThat(linesAboutParameters())
                .containsExactly(
                        "INFO Optimized execution is enabled for model instance 'm'",
                        "INFO Cache Cleaning is disabled for model instance 'm'",
                        "INFO Inference Mode is enabled for model instance 'm'",
                        "INFO cuDNN is enabled for model instance 'm'");
    }

    @Test
    void linesOfAll() {
        test.with("DISABLE_OPTIMIZED_EXECUTION", "true")
                .with("ENABLE_CACHE_CLEANING", "true")
                .with("INFERENCE_MODE", "false")
                .with("DISABLE_CUDNN", "true")
                .with("ENABLE_TENSOR_FUSER", "true")
                .with("ENABLE_WEIGHT_SHARING", "true")
                .with("ENABLE_JIT_PROFILING", "true")
                .with("ENABLE_JIT_EXECUTOR", "true")
                .with("INTRA_OP_THREAD_COUNT", "1")
                .with("INTER_OP_THREAD_COUNT", "3")
                .load(settings());

        assertThat(linesAboutParameters())
                .containsExactly(
                        "INFO Optimized execution is disabled for model instance 'm'",
                        "INFO Cache Cleaning is enabled for model instance 'm' (ENABLE_CACHE_CLEANING has no effect on"
                                + " the CPU)",
                        "INFO Inference Mode is disabled for model instance 'm'",
                        "INFO cuDNN is disabled for model instance 'm' (DISABLE_CUDNN has no effect on the CPU)",
                        "INFO Tensor fuser is enabled for model instance 'm' (ENABLE_TENSOR_FUSER has no effect on the"
                                + " CPU)",
                        "INFO Weight sharing is enabled for model instance 'm'",
                        "INFO Jit profiling is enabled for model instance 'm'",
                        "INFO Jit executor is enabled for model instance 'm'",
                        "INFO Intra op thread count is set to 1 for model instance 'm'",
                        "INFO Inter op thread count is set to 3 for model instance 'm'");
    }

    @Test
    void linesOfTheOtherValues() {
        test.with("ENABLE_CACHE_CLEANING", "0")
                .with("DISABLE_CUDNN", "off")
                .with("ENABLE_TENSOR_FUSER", "False")
                .with("ENABLE_WEIGHT_SHARING", "false")
                .with("ENABLE_NVFUSER", "whatever")
                .load(settings());

        assertThat(linesAboutParameters())
                .containsExactly(
                        "INFO Optimized execution is enabled for model instance 'm'",
                        "INFO Cache Cleaning is disabled for model instance 'm' (ENABLE_CACHE_CLEANING has no effect on"
                                + " the CPU)",
                        "INFO Inference Mode is enabled for model instance 'm'",
                        "INFO cuDNN is enabled for model instance 'm' (DISABLE_CUDNN has no effect on the CPU)",
                        "INFO Tensor fuser is disabled for model instance 'm' (ENABLE_TENSOR_FUSER has no effect on the"
                                + " CPU)",
                        "INFO Weight sharing is disabled for model instance 'm'",
                        "INFO ENABLE_NVFUSER has no effect: PyTorch has no such fuser any more for model instance 'm'");
    }

    @ParameterizedTest
    @CsvSource({
        "true, disabled", "TRUE, disabled", "on, disabled", "On, disabled", "1, disabled",
        "false, enabled", "False, enabled", "off, enabled", "OFF, enabled", "0, enabled"
    })
    void truth(String word, String state) {
        test.with("DISABLE_OPTIMIZED_EXECUTION", word).load(settings());

        assertThat(linesAboutParameters())
                .first()
                .isEqualTo("INFO Optimized execution is " + state + " for model instance 'm'");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "DISABLE_OPTIMIZED_EXECUTION",
                "INFERENCE_MODE",
                "DISABLE_CUDNN",
                "ENABLE_JIT_PROFILING",
                "ENABLE_JIT_EXECUTOR",
                "ENABLE_TENSOR_FUSER",
                "ENABLE_WEIGHT_SHARING",
                "ENABLE_CACHE_CLEANING"
            })
    void otherWordsForTruth(String name) {
        for (String word : List.of("yes", "", "2", "truth", " true", "t")) {
            BackendException refusal = test.with(name, word).refusal(settings());

            assertThat(refusal)
                    .message()
                    .startsWith("failed to convert '" + word + "' to boolean; ")
                    .contains(name)
                    .endsWith(" (expected: true or false)");
            assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"INTRA_OP_THREAD_COUNT", "INTER_OP_THREAD_COUNT"})
    void otherNumbers(String name) {
        for (String word : List.of("x", "", "-", "x4", "2147483648", "99999999999999999999")) {
            BackendException refusal = test.with(name, word).refusal(settings());

            assertThat(refusal)
                    .message()
                    .startsWith("failed to convert '" + word + "' to integral number; ")
                    .contains(name);
            assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        }
        assertThat(test.with(name, "1025").refusal(settings()))
                .message()
                .startsWith("1025 threads; ")
                .contains(name)
                .endsWith(" (expected: at most 1024)");
    }

    @ParameterizedTest
    @CsvSource({"2x, 2", "3.9, 3", "' 2', 2", "+3, 3"})
    void numberAtTheBeginning(String word, int threads) {
        test.with("INTRA_OP_THREAD_COUNT", word).load(settings());

        assertThat(linesAboutParameters())
                .contains("INFO Intra op thread count is set to " + threads + " for model instance 'm'");
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "-1", "-2147483648"})
    void numberBelowOneIsIgnored(String word) {
        test.with("INTRA_OP_THREAD_COUNT", word)
                .with("INTER_OP_THREAD_COUNT", word)
                .load(settings());

        assertThat(linesAboutParameters()).noneMatch(line -> line.contains("thread count"));
    }

    @Test
    void errorsOfParametersComeFirst() {
        assertThat(test.with("INTRA_OP_THREAD_COUNT", "many").refusal(ModelSettings.builder("m", 1)))
                .hasMessageStartingWith("failed to convert 'many' to integral number");
    }

    @Test
    void unknownParametersAreIgnored() {
        test.with("ENABLE_NVFUSER", "yes").with("other", "").load(settings());
    }

    @Test
    void sharedModuleThatNothingChanges() {
        Model model = test.with("ENABLE_WEIGHT_SHARING", "true").load(settings(), 3);
        for (int i = 0; i < 3; i++) {
            assertThat(next(test.instance(model))).isEqualTo(2);
        }

        assertThat(test.log())
                .filteredOn("INFO Reusing TorchScript model for instance 'm'"::equals)
                .hasSize(2);
        assertThat(test.log()).noneMatch(line -> line.startsWith("WARNING"));
    }

    @Test
    void withoutSharingNothingIsSaidOfIt() {
        Model model = test.load(settings(), 3);
        for (int i = 0; i < 3; i++) {
            test.instance(model);
        }

        assertThat(test.log()).noneMatch(line -> line.contains("Reusing"));
    }

    @Test
    void instancesCountForThemselves() {
        writeCounter();
        Model model = test.load(settings(), 2);
        var first = test.instance(model);
        var second = test.instance(model);

        assertThat(List.of(next(first), next(first), next(second))).containsExactly(1f, 2f, 1f);
    }

    @Test
    void instancesThatShareCountTogether() {
        writeCounter();
        Model model = test.with("ENABLE_WEIGHT_SHARING", "1").load(settings(), 2);
        var first = test.instance(model);
        var second = test.instance(model);

        assertThat(List.of(next(first), next(first), next(second))).containsExactly(1f, 2f, 3f);
        assertThat(test.log())
                .contains("WARNING ENABLE_WEIGHT_SHARING: executions may change the module of model 'm', which its"
                        + " instances share (expected: a module whose forward changes no buffer)");
    }

    @ParameterizedTest
    @CsvSource({"true, true", "true, false", "false, true", "false, false"})
    void modes(String inference, String unoptimized) {
        test.with("INFERENCE_MODE", inference).with("DISABLE_OPTIMIZED_EXECUTION", unoptimized);
        assertThat(next(test.instance(test.load(settings())))).isEqualTo(2);

        writeCounter();
        var counter = test.instance(test.load(settings()));

        assertThat(List.of(next(counter), next(counter), next(counter))).containsExactly(1f, 2f, 3f);
    }

    @ParameterizedTest
    @CsvSource({"1, 4", "2, 2", "3, 1", "4, 1", "9, 1"})
    void threadsOfInstances(int instances, int threads) {
        ScriptFiles.write(
                directory,
                "def forward(self, x: Tensor) -> Tensor:\n    return torch.matmul(x + self.w, self.w)\n",
                module -> module.register_buffer("w", torch.ones(400, 400)));
        TensorSpec matrix = TensorSpec.of("x", DataType.FP32, Shape.of(Shape.VARIABLE, 400));
        test.load(
                ModelSettings.builder("m", 1)
                        .input(matrix)
                        .output(TensorSpec.of("OUTPUT__0", DataType.FP32, Shape.of(Shape.VARIABLE, 400))),
                instances);

        assertThat(test.log()).anyMatch(line -> line.contains(", threads " + threads + ", instances " + instances));
    }

    @Test
    void otherNumbersOfInstancesSuit() {
        Model model = test.load(settings(), 3);

        assertThat(model.suits(Collections.nCopies(4, Device.CPU))).isTrue();
        assertThat(model.suits(Collections.nCopies(2, Device.CPU))).isFalse();
    }

    @Test
    void givenThreadsSuitAnyNumberOfInstances() {
        Model model = test.with("INTRA_OP_THREAD_COUNT", "2").load(settings(), 3);

        assertThat(model.suits(List.of(Device.CPU))).isTrue();
    }
}
