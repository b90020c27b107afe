package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.plugin.BackendStatus;
import dev.nereid.repository.config.ConfigProblem;
import dev.nereid.server.check.CheckReport;
import dev.nereid.server.check.CheckReport.ModelReport;
import dev.nereid.server.check.RepositoryCheck;
import dev.nereid.server.options.ServerOptions;
import inference.ModelConfig;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests the check of repositories. */
@Timeout(60)
final class RepositoryCheckTest {
    @TempDir
    private Path directory;

    private Path root;
    private Path plugins;
    private Path events;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        root = Files.createDirectories(directory.resolve("models"));
        plugins = Files.createDirectories(directory.resolve("plugins"));
        events = directory.resolve("events");
        models = new TestModels(root);
        TestPlugins.recording(plugins);
    }

    @Test
    void completesModelsAndClosesTheirBackend() throws IOException {
        models.model("auto", "backend: \"recording\"", 1, 3).recording("plain", "");

        CheckReport report = RepositoryCheck.run(options());

        assertThat(report.isValid()).isTrue();
        assertThat(report.backends())
                .containsExactly(new BackendStatus("recording", "recording", BackendStatus.State.AVAILABLE, ""));
        assertThat(report.models())
                .extracting(ModelReport::name, ModelReport::versions)
                .containsExactly(tuple("auto", List.of(3L)), tuple("plain", List.of(1L)));
        ModelConfig config = report.models().getFirst().config().orElseThrow();
        assertThat(config.getMaxBatchSize()).isEqualTo(4);
        assertThat(config.getInput(0).getName()).isEqualTo("INPUT0");
        assertThat(config.getInstanceGroup(0).getCount()).isEqualTo(1);
        assertThat(Files.readAllLines(events))
                .containsExactly("create", "complete auto/3", "complete plain/1", "close backend");
    }

    @Test
    void reportsEveryModelWithItsErrors() throws IOException {
        models.recording("good", "")
                .model("misspelt", "backend: \"recording\"\nmax_batch: 8\ninput { nam: \"x\" }\n")
                .model("negative", "backend: \"recording\"\nmax_batch_size: -1")
                .model("auto_beyond", "backend: \"recording\"\nmax_batch_size: 16")
                .model("auto_limit", "backend: \"recording\"\nmax_batch_size: 8")
                .model("nothing", "")
                .model("orphan", "backend: \"lost\"\n" + TestModels.TENSORS)
                .model("series", "platform: \"ensemble\" ensemble_scheduling {}");
        Files.createDirectories(root.resolve("versionless"));

        CheckReport report = RepositoryCheck.run(options());

        assertThat(report.isValid()).isFalse();
        assertThat(model(report, "good").isValid()).isTrue();
        assertThat(model(report, "auto_limit").isValid()).isTrue();
        assertThat(messages(report, "auto_beyond"))
                .containsExactly("version 1: model 'auto_beyond': max_batch_size: 16 (expected: at most 8, which"
                        + " backend 'recording' allows)");
        assertThat(model(report, "misspelt").file()).isEqualTo(root.resolve("misspelt/config.pbtxt"));
        assertThat(model(report, "misspelt").errors())
                .extracting(ConfigProblem::line, ConfigProblem::column, ConfigProblem::suggestion)
                .containsExactly(tuple(2, 1, "max_batch_size"), tuple(3, 9, "name"));
        assertThat(messages(report, "negative"))
                .containsExactly("'max_batch_size' must be non-negative value for negative");
        assertThat(messages(report, "nothing")).singleElement().asString().contains("Could not determine backend");
        assertThat(messages(report, "orphan"))
                .singleElement()
                .asString()
                .startsWith("version 1: unable to find backend library for backend 'lost'");
        assertThat(messages(report, "series")).containsExactly("must specify 'step' for ensemble 'series'");
        assertThat(messages(report, "versionless")).hasSize(1);
    }

    @Test
    void namesPlaceholdersThatWereNotFilledIn() throws IOException {
        models.model("number", "backend: \"recording\"\nmax_batch_size: ${triton_max_batch_size}\n")
                .model("backend", "backend: \"${backend}\"\n" + TestModels.TENSORS)
                .recording("value", parameter("tokenizer_dir", "${tokenizer_dir}"));

        CheckReport report = RepositoryCheck.run(options());

        assertThat(messages(report, "number"))
                .containsExactly("Expected integer, got: $ (expected: an integer);"
                        + " looks like a template that was not filled in");
        assertThat(model(report, "backend").isValid()).isFalse();
        assertThat(model(report, "backend").warnings())
                .containsExactly("backend: '${backend}' looks like a template that was not filled in");
        assertThat(model(report, "value").isValid()).isTrue();
        assertThat(model(report, "value").warnings())
                .containsExactly("parameters['tokenizer_dir'].string_value: '${tokenizer_dir}' looks like a template"
                        + " that was not filled in");
    }

    @Test
    void readsNoFileThatIsNone() throws Exception {
        models.model("directory", "").model("pipe", "").model("binary", "").model("huge", "");
        Files.createDirectories(root.resolve("directory/config.pbtxt"));
        assertThat(new ProcessBuilder(
                                "mkfifo", root.resolve("pipe/config.pbtxt").toString())
                        .start()
                        .waitFor())
                .isZero();
        Files.write(root.resolve("binary/config.pbtxt"), "name: \"\u00ff\"".getBytes(StandardCharsets.ISO_8859_1));
        try (var channel = Files.newByteChannel(
                root.resolve("huge/config.pbtxt"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            channel.position(1L << 40).write(ByteBuffer.wrap(new byte[] {1})); // sparse
        }

        CheckReport report = RepositoryCheck.run(options());

        assertThat(model(report, "directory").warnings())
                .containsExactly("config.pbtxt is ignored: it is a directory (expected: a file)");
        assertThat(messages(report, "pipe"))
                .containsExactly("failed to read text proto from pipe/config.pbtxt: not a regular file");
        assertThat(model(report, "binary").errors())
                .extracting(ConfigProblem::line, ConfigProblem::column, ConfigProblem::message)
                .containsExactly(tuple(1, 8, "byte 0xff is no UTF-8 (expected: UTF-8 text)"));
        assertThat(messages(report, "huge"))
                .containsExactly("the file cannot be read: more than 16777216 bytes (expected: at most 16777216)");
    }

    @Test
    void findsTheFilesOfWarmupsAndStates() throws IOException {
        String warmup = """
                model_warmup { name: "w" batch_size: 1 inputs { key: "INPUT0"
                  value { data_type: TYPE_FP32 dims: [ 1 ] input_data_file: "%s" } } }
                """;
        String state = """
                sequence_batching { state { input_name: "IN" output_name: "OUT" data_type: TYPE_FP32 dims: [ 1 ]
                  initial_state { name: "s" data_type: TYPE_FP32 dims: [ 1 ] data_file: "%s" } } }
                """;
        models.recording("warm", warmup.formatted("there"))
                .recording("cold", warmup.formatted("missing"))
                .recording("away", warmup.formatted("../../cold/config.pbtxt"))
                .recording("begun", state.formatted("there"))
                .recording("lost", state.formatted("missing"));
        Files.write(Files.createDirectories(root.resolve("warm/warmup")).resolve("there"), new byte[4]);
        Files.write(Files.createDirectories(root.resolve("begun/initial_state")).resolve("there"), new byte[4]);

        CheckReport report = RepositoryCheck.run(options());

        assertThat(messages(report, "warm")).isEmpty();
        assertThat(messages(report, "begun")).isEmpty();
        assertThat(messages(report, "cold"))
                .containsExactly("version 1: failed to open text file for read missing: No such file or directory");
        assertThat(messages(report, "away"))
                .containsExactly("version 1: file path '../../cold/config.pbtxt' is outside of the model's warmup"
                        + " directory");
        assertThat(messages(report, "lost"))
                .containsExactly("version 1: failed to open text file for read missing: No such file or directory");
    }

    @Test
    void warnsOfSettingsWithoutEffect() throws IOException {
        models.recording("m", """
                response_cache { enable: true }
                instance_group { kind: KIND_CPU rate_limiter { priority: 2 } }
                optimization { eager_batching: true input_pinned_memory { enable: true } cuda { graphs: true } }
                version_policy { specific { versions: [ 1, 7 ] } }
                """);
        Files.createDirectories(root.resolve("m/007"));
        Files.createDirectories(root.resolve("m/warmup"));

        ModelReport report = model(RepositoryCheck.run(options()), "m");

        assertThat(report.errors()).isEmpty();
        assertThat(report.warnings())
                .containsExactly(
                        "directory 007 is ignored"
                                + " (expected: a version from 0 to 9223372036854775807 without leading zeros)",
                        "version 7 of version_policy.specific has no directory",
                        "instance_group.rate_limiter has no effect: the server has no rate limiter"
                                + " (expected: --rate-limit=execution_count)",
                        "response_cache has no effect: the server has no cache (expected: --cache-config)",
                        "optimization.eager_batching has no effect",
                        "optimization.cuda has no effect: every instance runs on the CPU",
                        "optimization.input_pinned_memory has no effect: every instance runs on the CPU");
    }

    @Test
    void loadsModelsOnlyIfRequested() throws Exception {
        models.recording("breaks", parameter("fail_load", "1"))
                .recording("good", "")
                .model("wrong", "x: 1");

        assertThat(RepositoryCheck.run(options()).models())
                .extracting(ModelReport::isValid)
                .containsExactly(true, true, false);
        CheckReport loaded = RepositoryCheck.runWithLoads(options());

        assertThat(messages(loaded, "breaks")).containsExactly("version 1: Internal: the model's file is broken");
        assertThat(model(loaded, "good").isValid()).isTrue();
        assertThat(model(loaded, "wrong").errors()).hasSize(1);
        assertThat(Files.readAllLines(events)).contains("load good/1 on [cpu]", "close good/1");
    }

    /** Reads of {@code complete}, {@code load} and {@code newInstance} count alike. */
    @Test
    void warnsOfMisspeltParametersIfModelsAreLoaded() throws Exception {
        models.recording(
                        "m",
                        parameter("completion_notes", "1")
                                + parameter("fail_lod", "1")
                                + parameter("fail_instanc", "1")
                                + parameter("nothing_like_it", "1")
                                + parameter("TRITON_ANY", "1"))
                .recording("breaks", parameter("fail_load", "1") + parameter("completion_not", "1"))
                .recording("right", parameter("completion_note", "1"));

        assertThat(model(RepositoryCheck.run(options()), "m").warnings()).isEmpty();
        CheckReport loaded = RepositoryCheck.runWithLoads(options());

        assertThat(model(loaded, "m").warnings())
                .containsExactly(
                        "unknown parameter 'completion_notes' has no effect; did you mean 'completion_note'?",
                        "unknown parameter 'fail_instanc' has no effect; did you mean 'fail_instance'?",
                        "unknown parameter 'fail_lod' has no effect; did you mean 'fail_load'?");
        assertThat(model(loaded, "breaks").warnings())
                .containsExactly("unknown parameter 'completion_not' has no effect; did you mean 'completion_note'?");
        assertThat(model(loaded, "right").warnings()).isEmpty();
    }

    /** Settings for all backends are those of others, or of the server. */
    @Test
    void warnsOnceOfAMisspeltSettingOfABackendIfModelsAreLoaded() throws Exception {
        models.recording("a", "").recording("b", "");
        ServerOptions options = options()
                .withBackendSetting("recording", "fail_crate", "1")
                .withBackendSetting("recording", "nothing_like_it", "1")
                .withBackendSetting("", "fail_creat", "1")
                .withBackendSetting("", "default-max-batch-size", "2");
        String warning =
                "--backend-config=recording,fail_crate: unknown setting has no effect; did you mean 'fail_create'?";
        List<String> reported = new CopyOnWriteArrayList<>();

        CheckReport loaded = RepositoryCheck.runWithLoads(options);
        NereidServer.start(options.with(o -> o.warnings = (model, text) -> reported.add(model + ": " + text)))
                .close();

        assertThat(RepositoryCheck.run(options).warnings()).isEmpty();
        assertThat(loaded.warnings()).containsExactly(warning);
        assertThat(loaded.models())
                .allSatisfy(model -> assertThat(model.warnings()).isEmpty());
        assertThat(reported).containsExactly(": " + warning);
    }

    /** The backend says FP32, and one output. */
    @Test
    void warnsOfConfiguredTensorsThatTheBackendReplaces() throws Exception {
        String start = "backend: \"recording\"\n";
        models.model("auto_other", start + """
                                max_batch_size: 8
                                input { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] }
                                output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 9 ] }
                                output { name: "Z" data_type: TYPE_FP32 dims: [ 1 ] }
                                """, 2)
                .model("auto_partial", start + "input { name: \"INPUT0\" dims: [ -1 ] }")
                .model("auto_same", start + "max_batch_size: 8\n" + TestModels.TENSORS);
        String warning = "model 'auto_other', version 2: backend 'recording' replaces configured tensors:"
                + " input 'INPUT0' data_type TYPE_INT32 → TYPE_FP32; output 'OUTPUT0' dims [9] → [-1];"
                + " output 'Z' removed";

        CheckReport report = RepositoryCheck.run(options());
        CheckReport loaded = RepositoryCheck.runWithLoads(options());
        List<String> reported = new CopyOnWriteArrayList<>();
        NereidServer.start(options().with(o -> o.warnings = (model, text) -> reported.add(model + ": " + text)))
                .close();

        assertThat(report.isValid()).isTrue();
        assertThat(model(report, "auto_other").warnings()).containsExactly(warning);
        assertThat(model(loaded, "auto_other").warnings()).containsExactly(warning);
        assertThat(reported).containsExactly("auto_other: " + warning);
        for (String name : List.of("auto_partial", "auto_same")) {
            assertThat(model(report, name).warnings()).isEmpty();
            assertThat(model(loaded, name).warnings()).isEmpty();
        }
    }

    @Test
    void usesTheNamedConfigurationAndNoCompletionIfRequested() throws IOException {
        models.model("auto", "backend: \"recording\"");
        Files.createDirectories(root.resolve("auto/configs"));
        Files.writeString(root.resolve("auto/configs/small.pbtxt"), "backend: \"recording\"\nmax_batch_size: x");

        CheckReport named = RepositoryCheck.run(options().with(o -> o.configName = "small"));
        CheckReport strict = RepositoryCheck.run(options().with(o -> o.autoComplete = false));

        assertThat(model(named, "auto").file()).isEqualTo(root.resolve("auto/configs/small.pbtxt"));
        assertThat(messages(named, "auto")).containsExactly("Expected integer, got: x (expected: an integer)");
        assertThat(model(strict, "auto").config())
                .hasValueSatisfying(
                        config -> assertThat(config.getMaxBatchSize()).isZero());
        assertThat(Files.readAllLines(events)).doesNotContain("complete auto/1");
    }

    @Test
    void reportsNamesInTwoRepositoriesAndLikelyMistakes() throws IOException {
        models.recording("m", "");
        Path other = Files.createDirectories(directory.resolve("other"));
        new TestModels(other).recording("m", "");
        Path model = root.resolve("m");

        CheckReport report = RepositoryCheck.run(options().with(o -> o.modelRepositories = List.of(root, other)));
        CheckReport tooDeep = RepositoryCheck.run(options().with(o -> o.modelRepositories = List.of(model)));
        CheckReport empty = RepositoryCheck.run(options().with(o -> o.modelRepositories = List.of(plugins)));

        assertThat(messages(report, "m"))
                .containsExactly(
                        "model appears in two or more repositories: [" + root + ", " + other + "] (expected: one)");
        assertThat(tooDeep.isValid()).isFalse();
        assertThat(tooDeep.warnings()).singleElement().asString().startsWith(model + " contains config.pbtxt");
        assertThat(empty.isValid()).isTrue();
        assertThat(empty.warnings()).containsExactly("no models found (expected: a directory for each model)");
    }

    private ServerOptions options() {
        return ServerOptions.of(root).withPlugins(plugins).withBackendSetting("recording", "events", events.toString());
    }

    private static ModelReport model(CheckReport report, String name) {
        return report.models().stream()
                .filter(model -> model.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private static List<String> messages(CheckReport report, String name) {
        return model(report, name).errors().stream().map(ConfigProblem::message).toList();
    }
}
