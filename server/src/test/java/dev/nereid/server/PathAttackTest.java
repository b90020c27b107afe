package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Paths that lead out of a model, or to what is no file, in names, label files and warm-up files: refused with a reason,
 * in time, and nothing outside is read. For files that clients send see {@code ModelControlTest}.
 */
@Timeout(60)
final class PathAttackTest {
    private static final String SECRET = "the secret that nobody may read";

    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
        Files.writeString(directory.resolve("secret"), SECRET);
    }

    /** Makes the entries that attacks name, in a directory of the model. */
    private void plant(Path place) throws IOException, InterruptedException {
        Files.createDirectories(place.resolve("sub"));
        Files.createSymbolicLink(place.resolve("link"), directory.resolve("secret"));
        Files.createSymbolicLink(place.resolve("up"), directory);
        Files.createSymbolicLink(place.resolve("device"), Path.of("/dev/zero"));
        new ProcessBuilder("mkfifo", place.resolve("pipe").toString()).start().waitFor();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "../../secret",
                "sub/../../../secret",
                "/../../secret",
                "/etc/passwd",
                "%2e%2e/%2e%2e/secret",
                "..%2f..%2fsecret",
                "link",
                "up/secret",
                "device",
                "pipe",
                "sub"
            })
    void refusesLabelFiles(String path) throws Exception {
        models.model("m", """
                backend: "recording"
                max_batch_size: 8
                input { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
                output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] label_filename: "%s" }
                """.formatted(path));
        plant(models.root().resolve("m"));

        assertRefused("m", "version 1 is at UNAVAILABLE state", path);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "../../../secret",
                "sub/../../../../secret",
                "/../../../secret",
                "/etc/passwd",
                "%2e%2e/%2e%2e/%2e%2e/secret",
                "link",
                "up/secret",
                "device",
                "pipe",
                "sub"
            })
    void refusesWarmupFiles(String path) throws Exception {
        models.recording("m", """
                model_warmup { name: "w" batch_size: 1 inputs { key: "INPUT0"
                  value { data_type: TYPE_FP32 dims: [ 1 ] input_data_file: "%s" } } }
                """.formatted(path));
        plant(models.root().resolve("m/warmup"));

        assertRefused("m", "version 1 is at UNAVAILABLE state", path);
    }

    /** The text says nothing of what lies elsewhere, and needs no directory of files. */
    @ParameterizedTest
    @ValueSource(strings = {"../../../secret", "../../../missing", "/../secret", "sub/../../missing"})
    void refusesWarmupFilesElsewhereByTheirText(String path) throws Exception {
        models.recording("m", """
                model_warmup { name: "w" batch_size: 1 inputs { key: "INPUT0"
                  value { data_type: TYPE_FP32 dims: [ 1 ] input_data_file: "%s" } } }
                """.formatted(path));

        assertRefused("m", "is outside of the model's warmup directory", path);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/etc/passwd", "%2e%2e/%2e%2e/%2e%2e/secret", "link", "up/secret", "device", "pipe", "sub"})
    void refusesStateFiles(String path) throws Exception {
        models.recording("m", """
                sequence_batching { state { input_name: "IN" output_name: "OUT" data_type: TYPE_FP32 dims: [ 1 ]
                  initial_state { name: "s" data_type: TYPE_FP32 dims: [ 1 ] data_file: "%s" } } }
                """.formatted(path));
        plant(models.root().resolve("m/initial_state"));

        assertRefused("m", "version 1 is at UNAVAILABLE state", path);
    }

    @ParameterizedTest
    @ValueSource(strings = {"../../../secret", "../../../missing"})
    void refusesStateFilesElsewhereByTheirText(String path) throws Exception {
        models.recording("m", """
                sequence_batching { state { input_name: "IN" output_name: "OUT" data_type: TYPE_FP32 dims: [ 1 ]
                  initial_state { name: "s" data_type: TYPE_FP32 dims: [ 1 ] data_file: "%s" } } }
                """.formatted(path));

        assertRefused("m", "is outside of the model's initial_state directory", path);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/dev", "1", "../..", "../nowhere"})
    void refusesVersionsThatAreLinksElsewhere(String target) throws Exception {
        models.model("m", TestModels.TENSORS);
        Files.delete(models.root().resolve("m/1"));
        Files.createSymbolicLink(models.root().resolve("m/1"), Path.of(target));

        assertRefused("m", "model file: 'm/1'", "m/1");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', textBlock = """
            link          | failed to poll from model repository
            up            | 'up' (expected: a path below its directory
            device        | failed to poll from model repository
            pipe          | failed to poll from model repository
            %2e%2e        | failed to poll from model repository
            ..%2fmodels   | failed to poll from model repository
            """)
    void refusesNames(String name, String reason) throws Exception {
        plant(models.root());

        assertRefused(name, reason, name);
    }

    @ParameterizedTest
    @ValueSource(strings = {"../../secret", "..", "a/b", "/etc/passwd", "a\\b"})
    void refusesNamesOfConfigurations(String name) {
        assertThatThrownBy(() -> ServerOptions.of(directory).with(o -> o.configName = name))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("--model-config-name: '" + name + "' (expected: ");
    }

    private void assertRefused(String model, String reason, String path) throws Exception {
        ServerOptions options = ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> o.explicit());
        try (NereidServer server = NereidServer.start(options)) {
            assertThatThrownBy(() -> {
                        try {
                            server.control()
                                    .load(new ModelControl.Load(model, Optional.empty(), Map.of()))
                                    .toCompletableFuture()
                                    .get();
                        } catch (ExecutionException e) {
                            throw e.getCause();
                        }
                    })
                    .isInstanceOf(InferenceException.class)
                    .hasMessageContaining(reason)
                    .hasMessageContaining(path)
                    .hasMessageNotContaining(SECRET);
        }
        assertThat(events()).noneMatch(event -> event.startsWith("execute"));
    }

    private List<String> events() throws IOException {
        Path events = directory.resolve("events");
        try (Stream<String> lines = Files.exists(events) ? Files.lines(events) : Stream.empty()) {
            return lines.toList();
        }
    }
}
