package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.plugin.PluginJar;
import dev.nereid.plugin.UnloadWatch;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Serves functions that are declared by annotations, from a jar whose service file the compiler wrote. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class AnnotatedFunctionTest {
    private static final String TIMES = """
            package times;

            import dev.nereid.spi.*;
            import dev.nereid.spi.function.*;

            @BackendFunction(name = "times", maxBatchSize = 8, dynamicBatching = true)
            @Input(name = "INPUT0", type = DataType.FP32, dims = -1)
            @Input(name = "OFFSET", type = DataType.FP32, dims = 1, optional = true)
            @Output(name = "OUTPUT0", type = DataType.FP32, dims = -1)
            public final class Times implements TensorFunction {
                public Times() { REGISTRATION }

                public void apply(InferenceRequest request, ModelContext model) {
                    if (model.parameters().value("typo").isPresent()) {
                        request.requireInput("INPUT");
                    }
                    float[] values = request.requireInput("INPUT0").floats();
                    for (int i = 0; i < values.length; i++) {
                        values[i] *= FACTOR;
                    }
                    request.response().putFloats("OUTPUT0", request.requireInput("INPUT0").shape(), values);
                }
            }
            """;

    private static final String LATER = """
            package times;

            import dev.nereid.spi.*;
            import dev.nereid.spi.function.*;
            import java.util.concurrent.*;

            @BackendFunction(name = "later", maxBatchSize = 0)
            @Input(name = "INPUT0", type = DataType.FP32, dims = {1, -1})
            @Output(name = "OUTPUT0", type = DataType.FP32, dims = {1, -1})
            public final class Later implements AsyncTensorFunction {
                public CompletionStage<?> apply(InferenceRequest request, ModelContext model) {
                    Tensor in = request.requireInput("INPUT0");
                    return CompletableFuture.supplyAsync(in::floats).thenAccept(
                            values -> request.response().putFloats("OUTPUT0", in.shape(), values));
                }
            }
            """;

    @TempDir
    private Path directory;

    private Path jar;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        jar = Files.createDirectories(directory.resolve("plugins")).resolve("times.jar");
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
    }

    @Test
    void servesModelsThatNameTheBackendAlone() throws Exception {
        build(2);
        models.model("m", "backend: \"times\"").model("n", "backend: \"later\"");
        try (NereidServer server = NereidServer.start(options())) {
            load(server, "m");
            load(server, "n");

            assertThat(RecordingObserver.to(server, "m", 1, 2.5f).response().values())
                    .containsExactly(2f, 5f);
            assertThat(RecordingObserver.to(server, "n", 1, 2.5f).response().values())
                    .containsExactly(1f, 2.5f);
            ModelMetadata declared = server.models().metadata(ModelRef.latest("m"));
            assertThat(declared.maxBatchSize()).isEqualTo(8);
            assertThat(declared.inputs())
                    .containsExactly(
                            TensorSpec.of("INPUT0", DataType.FP32, Shape.of(-1)),
                            TensorSpec.of("OFFSET", DataType.FP32, Shape.of(1)).with(TensorSpec.Trait.OPTIONAL));
            assertThat(declared.outputs()).containsExactly(TensorSpec.of("OUTPUT0", DataType.FP32, Shape.of(-1)));
            assertThat(server.models().config(ModelRef.latest("m")).hasDynamicBatching())
                    .isTrue();
            assertThat(server.models().config(ModelRef.latest("n")).hasDynamicBatching())
                    .isFalse();
        }
    }

    @Test
    void keepsABatchSizeOfZeroThatIsWritten() throws Exception {
        build(2);
        models.model("m", "backend: \"times\" max_batch_size: 0");
        try (NereidServer server = NereidServer.start(options())) {
            load(server, "m");

            assertThat(server.models().metadata(ModelRef.latest("m")).maxBatchSize())
                    .isZero();
            assertThat(server.models().config(ModelRef.latest("m")).getInput(0).getDimsList())
                    .containsExactly(-1L, -1L);
        }
    }

    @Test
    void refusesAConfigurationThatContradictsAnAnnotation() throws Exception {
        build(2);
        models.model("m", "backend: \"times\" max_batch_size: 9")
                .model("n", "backend: \"later\" input { name: \"INPUT0\" data_type: TYPE_INT8 dims: [ 1, 2 ] }");
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server, "m"))
                    .hasMessageContaining("model 'm', backend 'times': max_batch_size: 9 (expected: at most 8)");
            assertThatThrownBy(() -> load(server, "n"))
                    .hasMessageContaining("model 'n', backend 'later': input 'INPUT0': data_type: TYPE_INT8 (expected:"
                            + " TYPE_FP32)");
        }
    }

    @Test
    void aMissingInputIsNamedBesideThoseThatAreThere() throws Exception {
        build(2);
        models.model("m", "backend: \"times\" " + TestModels.parameter("typo", "true"));
        try (NereidServer server = NereidServer.start(options())) {
            load(server, "m");
            RecordingObserver observer = RecordingObserver.to(server, "m", 1);

            assertThat(observer.error().code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(observer.error().publicMessage())
                    .contains("input 'INPUT': not in the request (it has: [INPUT0])");
        }
    }

    @Test
    void aModelOfABrokenFunctionFailsWithItsError() throws Exception {
        PluginJar.of(source(2).replace("dims = 1,", "dims = 0,"))
                .provider("times.Times")
                .write(jar);
        models.model("m", "backend: \"times\"");
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server, "m"))
                    .hasMessageContaining("unable to find backend library for backend 'times'")
                    .hasMessageContaining("class times.Times: annotation @Input 'OFFSET': dims: [0] (expected: ");
        }
    }

    @Test
    void aReplacedFunctionIsUnloaded() throws Exception {
        build(2);
        models.model("m", "backend: \"times\"");
        try (NereidServer server = NereidServer.start(options());
                UnloadWatch watch = new UnloadWatch()) {
            load(server, "m");
            build(3);
            load(server, "m");

            assertThat(RecordingObserver.to(server, "m", 7).response().values()).containsExactly(21f);
            while (watch.loaded() > 1) {
                Thread.onSpinWait(); // until the generation of the old plugin is closed
            }
        }
    }

    private void build(int factor) throws IOException {
        Path written = PluginJar.of(source(factor), LATER).processed().write(directory.resolve("build/times.jar"));
        Files.move(written, jar, StandardCopyOption.REPLACE_EXISTING);
    }

    private static String source(int factor) {
        return TIMES.replace("FACTOR", String.valueOf(factor)).replace("REGISTRATION", UnloadWatch.REGISTRATION);
    }

    private static void load(NereidServer server, String model) throws Exception {
        server.control()
                .load(new ModelControl.Load(model, Optional.empty(), Map.of()))
                .toCompletableFuture()
                .get();
    }

    private ServerOptions options() {
        return ServerOptions.of(directory.resolve("models"))
                .withPlugins(directory.resolve("plugins"))
                .with(o -> {
                    o.pluginCache = directory.resolve("work");
                    o.explicit();
                });
    }
}
