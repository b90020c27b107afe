package dev.nereid.server;

import static dev.nereid.server.TestControl.awaitIndex;
import static dev.nereid.server.TestControl.index;
import static dev.nereid.server.TestControl.load;
import static dev.nereid.server.TestControl.unload;
import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.repository.storage.StorageLimits;
import dev.nereid.repository.storage.StorageOptions;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which failed loads make a server unready, and what is said of models and versions that are gone. */
@Timeout(120)
final class ReadinessTest {
    private static final String ENSEMBLE = """
            platform: "ensemble"
            max_batch_size: 8
            %s
            ensemble_scheduling { step [ { model_name: "%s" model_version: -1
              input_map { key: "%s" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }
            """;

    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
        models.recording("good", "");
    }

    /** Adds models that cannot be loaded, all but the last one before a version exists. */
    private void addBroken() throws IOException {
        models.model("misspelt", "backend: \"recording\"\nmax_bach_size: 8\n");
        models.model("without_step", ENSEMBLE.formatted(TestModels.TENSORS, "nosuch", "INPUT0"));
        models.model("unfit", ENSEMBLE.formatted(TestModels.TENSORS, "good", "nosuch"));
        models.recording("without_version", "");
        Files.delete(models.root().resolve("without_version/1"));
        models.recording("broken", parameter("fail_load", "1"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"misspelt", "without_step", "unfit", "without_version", "broken"})
    void staysReadyIfALoadOfAClientFails(String model) throws Exception {
        addBroken();
        try (NereidServer server = NereidServer.start(explicit("good"))) {
            for (int attempt = 0; attempt < 2; attempt++) {
                assertThatThrownBy(() -> load(server, model)).isInstanceOf(InferenceException.class);
                assertThat(server.isReady()).isTrue();
            }
            assertThat(index(server)).anyMatch(line -> line.matches(model + " (1 )?UNAVAILABLE .+"));
        }
    }

    @Test
    void staysReadyIfAVersionFailsThatAClientAdds() throws Exception {
        try (NereidServer server = NereidServer.start(explicit("good"))) {
            models.recording("good", "version_policy { all {} }" + parameter("fail_load", "2"), 2);
            assertThatThrownBy(() -> load(server, "good")).isInstanceOf(InferenceException.class);

            assertThat(index(server))
                    .containsExactly("good 1 READY", "good 2 UNAVAILABLE Internal: the model's file is broken");
            assertThat(server.isReady()).isTrue();
        }
    }

    @Test
    void staysReadyWhileALoadOfAClientGoesOn() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("load_gate", gate.toString()) + parameter("fail_load", "1"));
        try (NereidServer server = NereidServer.start(explicit("good"))) {
            CompletionStage<Void> load = server.control().load(new ModelControl.Load("m", Optional.empty(), Map.of()));
            awaitIndex(server, "good 1 READY", "m 1 LOADING");
            assertThat(server.isReady()).isTrue();
            Files.delete(gate);
            assertThat(load.toCompletableFuture())
                    .failsWithin(Duration.ofSeconds(60))
                    .withThrowableThat()
                    .withMessageContaining("is broken");
            assertThat(server.isReady()).isTrue();
        }
    }

    /** The reference server counts a version that failed at the start; a retry of a client does not change that. */
    @Test
    void isNotReadyIfAVersionFailsAtTheStart() throws Exception {
        addBroken();
        try (NereidServer server = NereidServer.start(explicit("good", "broken"))) {
            assertThat(server.isReady()).isFalse();
            assertThatThrownBy(() -> load(server, "broken")).isInstanceOf(InferenceException.class);
            assertThat(server.isReady()).isFalse();

            models.recording("broken", "");
            load(server, "broken");
            assertThat(server.isReady()).isTrue();
        }
    }

    /** The step is no model of the start itself. */
    @Test
    void isNotReadyIfAVersionOfAStepFailsAtTheStart() throws Exception {
        addBroken();
        models.model("pipeline", ENSEMBLE.formatted(TestModels.TENSORS, "broken", "INPUT0"));
        try (NereidServer server = NereidServer.start(explicit("pipeline"))) {
            assertThat(server.isReady()).isFalse();
            unload(server, "broken");
            assertThat(server.isReady()).isTrue();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = ModelControlMode.class,
            names = {"NONE", "POLL"})
    void isReadyDespiteFailuresBeforeAVersionExists(ModelControlMode mode) throws Exception {
        addBroken();
        TestModels other = new TestModels(Files.createDirectories(directory.resolve("other")));
        other.recording("good", "");
        other.recording("lone", "");
        ServerOptions options = options(models.root(), other.root()).with(o -> {
            o.controlMode = mode;
            o.pollInterval = Duration.ofMillis(20);
            o.stabilityWindow = Duration.ofMillis(20);
        });
        models.recording("broken", "");
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(server.isReady()).isTrue();
            assertThat(index(server)).contains("lone 1 READY").anyMatch(line -> line.startsWith("unfit "));
        }
        models.recording("broken", parameter("fail_load", "1"));
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(server.isReady()).isFalse();
        }
    }

    /** A second copy of a model unloads it alone. */
    @Test
    void staysReadyInPollModeIfAModelAppearsTwice() throws Exception {
        TestModels other = new TestModels(Files.createDirectories(directory.resolve("other")));
        other.recording("lone", "");
        try (NereidServer server =
                NereidServer.start(options(models.root(), other.root()).with(o -> {
                    o.controlMode = ModelControlMode.POLL;
                    o.pollInterval = Duration.ofMillis(20);
                    o.stabilityWindow = Duration.ofMillis(20);
                }))) {
            other.recording("good", "");
            while (!index(server)
                    .equals(List.of("good UNAVAILABLE model appears in two or more repositories", "lone 1 READY"))) {
                Thread.onSpinWait(); // until the poller has scanned
            }
            while (!server.isReady()) {
                Thread.onSpinWait(); // a scan that tries again shows the unloads for a moment
            }
            assertThat(RecordingObserver.to(server, "lone", 1).response().values())
                    .containsExactly(1f);
            assertRefused(server, ModelRef.latest("good"), ErrorCode.NOT_FOUND, "'good' has no available versions");
            assertRefused(
                    server, new ModelRef("good", 1), ErrorCode.UNAVAILABLE, "'good' version 1 is not at ready state");
        }
    }

    @Test
    void remembersVersionsThatWereRemoved() throws Exception {
        models.recording("m", "", 1);
        try (NereidServer server = NereidServer.start(explicit("good", "m"))) {
            models.recording("m", "", 2);
            load(server, "m");
            awaitIndex(server, "good 1 READY", "m 1 UNAVAILABLE unloaded", "m 2 READY");

            assertRefused(server, new ModelRef("m", 1), ErrorCode.UNAVAILABLE, "'m' version 1 is not at ready state");
            assertRefused(server, new ModelRef("m", 3), ErrorCode.NOT_FOUND, "'m' version 3 is not found");
            assertThat(server.models().isReady(ModelRef.latest("m"))).isTrue();
            assertThat(server.isReady()).isTrue();
            server.updateInstances("m");
        }
    }

    /** A model that gets a new version time and again does not fill the index. */
    @Test
    void remembersTheHighestVersionsAlone() throws Exception {
        models.recording("m", "", 1);
        try (NereidServer server = NereidServer.start(explicit("m"))) {
            for (long version = 2; version <= 120; version++) {
                models.recording("m", "", version);
                load(server, "m");
            }
            while (index(server).stream().anyMatch(line -> line.contains("UNLOADING"))) {
                Thread.onSpinWait(); // until the last generation is closed
            }
            load(server, "m");
            assertThat(index(server)).hasSizeLessThanOrEqualTo(103).contains("m 120 READY");
            assertRefused(server, new ModelRef("m", 1), ErrorCode.NOT_FOUND, "'m' version 1 is not found");
        }
    }

    @Test
    void saysThatAModelWithoutVersionsHasNone() throws Exception {
        addBroken();
        try (NereidServer server = NereidServer.start(explicit("good"))) {
            for (String model : List.of("without_version", "misspelt")) {
                assertThatThrownBy(() -> load(server, model)).isInstanceOf(InferenceException.class);
            }
            assertRefused(
                    server,
                    ModelRef.latest("without_version"),
                    ErrorCode.NOT_FOUND,
                    "'without_version' has no available versions");
            assertRefused(
                    server,
                    new ModelRef("without_version", 1),
                    ErrorCode.NOT_FOUND,
                    "'without_version' version 1 is not found");
            assertRefused(server, ModelRef.latest("misspelt"), ErrorCode.NOT_FOUND, "'misspelt' is not found");
        }
    }

    @Test
    void needsAConfigurationThatIsNotCompleted() throws Exception {
        models.model("bare", "");
        try (NereidServer server = NereidServer.start(explicit("good").with(o -> o.autoComplete = false))) {
            String reason = "failed to open text file for read bare/config.pbtxt: No such file or directory";
            assertThatThrownBy(() -> load(server, "bare"))
                    .hasMessage("failed to load 'bare', failed to poll from model repository: " + reason);
            assertThat(index(server)).containsExactly("bare UNAVAILABLE Internal: " + reason, "good 1 READY");
            assertThat(server.isReady()).isTrue();
            assertRefused(server, ModelRef.latest("bare"), ErrorCode.NOT_FOUND, "'bare' is not found");
        }
    }

    @Test
    void servesARepositoryOnceThatIsGivenTwice() throws Exception {
        Path root = models.root();
        try (NereidServer server =
                NereidServer.start(options(root, root, root.resolve("good/..")).with(o -> o.exitOnError = true))) {
            assertThat(index(server)).containsExactly("good 1 READY");
        }
        assertThat(new StorageOptions(List.of("s3://a", "s3://a"), List.of(), Map.of(), root, StorageLimits.DEFAULT)
                        .urls())
                .containsExactly("s3://a");
    }

    @Test
    void runsWithoutModelsIfARepositoryDoesNotExist() throws Exception {
        Path missing = directory.resolve("missing");
        ServerOptions options = options(models.root(), missing);
        assertThatThrownBy(() -> NereidServer.start(options.with(o -> o.exitOnError = true)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("modelRepositories: " + missing + " (expected: an existing directory)");

        try (NereidServer server = NereidServer.start(options)) {
            assertThat(server.isLive()).isFalse();
            assertThat(server.isReady()).isFalse();
            assertThat(server.metadata().name()).isNotEmpty();
            assertThat(server.failures())
                    .singleElement()
                    .satisfies(failure -> assertThat(failure.name()).isEqualTo(missing.toString()));
            for (ModelRef model : List.of(ModelRef.latest("good"), new ModelRef("good", 1))) {
                assertThatThrownBy(() -> server.models().metadata(model))
                        .isInstanceOfSatisfying(
                                InferenceException.class,
                                e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                        .hasMessage("Server not ready");
            }
            assertThat(RecordingObserver.to(server, "good", 1).error().publicMessage())
                    .isEqualTo("Server not ready");
            assertThatThrownBy(() -> load(server, "good")).hasMessage("Server not ready");
            assertThatThrownBy(() -> unload(server, "good")).hasMessage("Server not ready");
            assertThat(server.control().index().toCompletableFuture()).isCompletedExceptionally();
        }
    }

    private static void assertRefused(NereidServer server, ModelRef model, ErrorCode code, String text) {
        assertThatThrownBy(() -> server.models().metadata(model))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(code))
                .hasMessage("Request for unknown model: " + text);
    }

    private ServerOptions explicit(String... startup) {
        return options(models.root()).with(o -> o.explicit(startup));
    }

    private ServerOptions options(Path... roots) {
        return ServerOptions.of(roots)
                .withPlugins(plugins)
                .with(o -> o.pluginCache = directory.resolve("work"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.exitOnError = false;
                    o.processors = 2;
                });
    }
}
