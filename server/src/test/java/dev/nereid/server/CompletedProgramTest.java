package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ModelRef;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Configurations of models of a backend that runs programs of another language. */
@Timeout(60)
final class CompletedProgramTest {
    private static final String GAP = """
            max_batch_size: 8
            input { name: "INPUT0" dims: [ 4 ] }
            output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
            """;

    @TempDir
    private Path directory;

    private final Scripts scripts = new Scripts();
    private Path plugins;
    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
    }

    @Test
    void namesTheProgramOfADirectory() throws Exception {
        Files.createFile(Files.createDirectories(plugins.resolve("summary")).resolve("model.py"));
        Files.createFile(Files.createDirectories(plugins.resolve("other")).resolve("main.script"));
        models.model("program", "backend: \"summary\"\n" + TestModels.TENSORS);
        models.model("given", "backend: \"summary\"\nruntime: \"mine.py\"\n" + TestModels.TENSORS);
        models.model("script", "backend: \"other\"\n" + TestModels.TENSORS);
        models.model("plain", "backend: \"scripts\"\n" + TestModels.TENSORS);
        try (NereidServer server = start()) {
            assertThat(runtime(server, "program")).isEqualTo("model.py");
            assertThat(runtime(server, "given")).isEqualTo("mine.py");
            assertThat(runtime(server, "script")).isEmpty();
            assertThat(runtime(server, "plain")).isEmpty();
        }
        assertThat(scripts.completed).anyMatch(seen -> seen.contains("\"runtime\":\"model.py\""));
    }

    @Test
    void completesInputsWithoutADataType() throws Exception {
        models.model("gap", "backend: \"scripts\"\n" + GAP);
        scripts.completion = ModelCompletion.EMPTY.withInput(TensorSpec.of("INPUT0", DataType.INT32, Shape.of(4)));
        try (NereidServer server = start()) {
            assertThat(server.models()
                            .metadata(ModelRef.latest("gap"))
                            .inputs()
                            .getFirst()
                            .type())
                    .isEqualTo(DataType.INT32);
        }
        assertThat(scripts.completed).hasSize(1);
        assertThat(scripts.completed.getFirst())
                .startsWith("inputs [], outputs [OUTPUT0]")
                .contains("\"name\":\"INPUT0\",\"data_type\":\"TYPE_INVALID\"");
    }

    @Test
    void refusesInputsThatNoBackendCompletes() throws Exception {
        models.model("gap", "backend: \"scripts\"\n" + GAP);
        assertThatThrownBy(this::start).hasMessageContaining("model input 'INPUT0' must specify 'data_type' for gap");
        assertThat(scripts.completed).hasSize(1);
    }

    private static String runtime(NereidServer server, String model) {
        return server.models().config(ModelRef.latest(model)).getRuntime();
    }

    private NereidServer start() throws InterruptedException {
        return NereidServer.start(
                ServerOptions.of(models.root()).withPlugins(plugins).with(o -> o.providers = List.of(scripts)));
    }

    private static final class Scripts implements BackendProvider, Backend {
        final List<String> completed = new CopyOnWriteArrayList<>();
        volatile ModelCompletion completion = ModelCompletion.EMPTY;

        @Override
        public String name() {
            return "scripts";
        }

        @Override
        public Optional<String> claims(Path found) {
            return Optional.of(found.getFileName().toString());
        }

        @Override
        public Backend create(BackendContext context) {
            return this;
        }

        @Override
        public Optional<ModelCompletion> complete(ModelContext context) {
            completed.add("inputs " + names(context.settings().inputs()) + ", outputs "
                    + names(context.settings().outputs()) + " of "
                    + context.settings().json());
            return Optional.of(completion);
        }

        private static List<String> names(List<TensorSpec> specs) {
            return specs.stream().map(TensorSpec::name).toList();
        }

        @Override
        public Model load(ModelContext context) {
            return _ -> batch -> batch.put("OUTPUT0", batch.gather("INPUT0"));
        }
    }
}
