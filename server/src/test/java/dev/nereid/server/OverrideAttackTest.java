package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Files and configurations that clients send, with paths that lead elsewhere: refused, or taken literally, and nothing is
 * read or written outside. See {@link PathAttackTest} for what lies in repositories.
 */
@Timeout(60)
final class OverrideAttackTest {
    private static final String SECRET = "the secret that nobody may read";
    private static final String CONFIG = """
            {"backend": "recording", "max_batch_size": 8,
             "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
             "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [1], "label_filename": "%s"}]}
            """;

    @TempDir
    private Path directory;

    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        TestPlugins.recording(Files.createDirectories(directory.resolve("plugins")));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        models.recording("m", "");
        Files.writeString(directory.resolve("secret"), SECRET);
        Path model = models.root().resolve("m");
        Files.createSymbolicLink(model.resolve("link"), directory.resolve("secret"));
        Files.createSymbolicLink(model.resolve("up"), directory);
        Files.createSymbolicLink(model.resolve("device"), Path.of("/dev/zero"));
        new ProcessBuilder("mkfifo", model.resolve("pipe").toString()).start().waitFor();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "../../escaped",
                "1/../../../escaped",
                "/escaped",
                "//escaped",
                "/dev/null",
                "/dev/shm/escaped",
                "/proc/self/mem",
                "1/..",
                "%2e%2e/../../escaped",
                "..\\escaped",
                "escaped\0"
            })
    void refusesFilesElsewhere(String path) throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(
                            () -> TestControl.load(server, "m", CONFIG.formatted("labels.txt"), files("1/good", path)))
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
                    .hasMessageStartingWith(
                            "failed to load 'm', failed to poll from model repository: file override: '")
                    .hasMessageContaining("expected: a path below its directory");

            assertThat(written()).isEmpty();
        }
        assertNothingOutside();
    }

    /** No protocol decodes the paths of files, so that these are names as others. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "%2e%2e/%2e%2e/escaped",
                "..%2f..%2fescaped",
                "%2Fdev%2Fnull",
                "%2e%2e%2fescaped",
                "...",
                "~/escaped",
                "$HOME/escaped",
                "dev/null"
            })
    void takesEncodedPathsLiterally(String path) throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            TestControl.load(server, "m", CONFIG.formatted("labels.txt"), files("1/model.bin", "labels.txt", path));

            assertThat(written()).hasSize(3).anyMatch(file -> file.endsWith("/m/" + path));
            TestControl.unload(server, "m");
            DemandFixture.await(() -> written().isEmpty());
        }
        assertNothingOutside();
    }

    /** The files replace the model's directory, so that its links, its device and its pipe are not found any more. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "link",
                "up/secret",
                "device",
                "pipe",
                "../../../secret",
                "/etc/passwd",
                "/dev/zero",
                "%2e%2e/%2e%2e/secret",
                "1"
            })
    void refusesPathsOfAConfigurationBesideFiles(String path) throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            assertRefused(server, path, files("1/model.bin"));
            assertThat(written()).as("what was refused is removed").isEmpty();
        }
    }

    /** Links, device and pipe lie in the model's own directory. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "link",
                "up/secret",
                "device",
                "pipe",
                "../../secret",
                "/etc/passwd",
                "/dev/zero",
                "%2e%2e/%2e%2e/secret",
                "1"
            })
    void refusesPathsOfAConfiguration(String path) throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            assertRefused(server, path, Map.of());
        }
    }

    private static void assertRefused(NereidServer server, String labels, Map<String, ByteBuffer> files) {
        assertThatThrownBy(() -> TestControl.load(server, "m", CONFIG.formatted(labels), files))
                .isInstanceOf(InferenceException.class)
                .hasMessageContaining("version 1 is at UNAVAILABLE state")
                .hasMessageContaining(labels)
                .hasMessageNotContaining(SECRET);
    }

    private void assertNothingOutside() throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            assertThat(all).noneMatch(path -> path.toString().contains("escaped"));
        }
        for (String place : List.of("/escaped", "/dev/shm/escaped")) {
            assertThat(Path.of(place)).doesNotExist();
        }
        assertThat(directory.resolve("secret")).hasContent(SECRET);
    }

    /** Lists the files of clients that are kept. Empty while they are removed. */
    private List<String> written() throws IOException {
        Path work = directory.resolve("work");
        try (Stream<Path> all = Files.exists(work) ? Files.walk(work) : Stream.empty()) {
            return all.filter(Files::isRegularFile)
                    .map(Path::toString)
                    .filter(file -> file.contains("overrides-") && file.contains("/m/"))
                    .toList();
        } catch (UncheckedIOException e) {
            return List.of("removed meanwhile");
        }
    }

    private static Map<String, ByteBuffer> files(String... paths) {
        ByteBuffer content =
                ByteBuffer.wrap("a".getBytes(StandardCharsets.UTF_8)).asReadOnlyBuffer();
        return Stream.of(paths).collect(Collectors.toMap(path -> path, _ -> content));
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> o.pluginCache = directory.resolve("work"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> o.explicit());
    }
}
