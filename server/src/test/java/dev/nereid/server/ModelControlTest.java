package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Loads and unloads at the request of clients. */
@Timeout(120)
final class ModelControlTest {
    private static final String ALL = "version_policy { all {} }\n";
    private static final String CONFIG = """
            {"backend": "recording", "maxBatchSize": 8, "instance_group": [{"kind": "kind_cpu", "count": 1}],
             "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": ["-1"]}],
             "output": [{"name": "OUTPUT0", "data_type": "type_fp32", "dims": [-1]}]%s}
            """;

    @TempDir
    private Path directory;

    private Path plugins;
    private Path events;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        events = directory.resolve("events");
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
    }

    @Test
    void loadsAndUnloads() throws Exception {
        models.recording("m", "");
        models.recording("n", "");
        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.isReady()).isTrue();
            assertThat(index(server)).containsExactly("m UNKNOWN", "n UNKNOWN");
            assertRefused(server, ModelRef.latest("m"), ErrorCode.NOT_FOUND, "'m' is not found");

            load(server, "m");

            assertThat(index(server)).containsExactly("m 1 READY", "n UNKNOWN");
            assertThat(infer(server, "m", 5)).containsExactly(5f);

            unload(server, "m");
            awaitIndex(server, "m 1 UNAVAILABLE unloaded", "n UNKNOWN");
            assertRefused(server, ModelRef.latest("m"), ErrorCode.NOT_FOUND, "'m' has no available versions");
            assertRefused(server, new ModelRef("m", 1), ErrorCode.UNAVAILABLE, "'m' version 1 is not at ready state");
            assertThat(server.isReady()).isTrue();
            unload(server, "m");
            unload(server, "nope");

            load(server, "m");
            assertThat(infer(server, "m", 6)).containsExactly(6f);
        }
    }

    @Test
    void loadsTheModelsOfTheStart() throws Exception {
        models.recording("a", "").recording("b", "").recording("c", "");
        try (NereidServer server = NereidServer.start(options("b", "c"))) {
            assertThat(index(server)).containsExactly("a UNKNOWN", "b 1 READY", "c 1 READY");
        }
        try (NereidServer server = NereidServer.start(options("*"))) {
            assertThat(index(server)).containsExactly("a 1 READY", "b 1 READY", "c 1 READY");
        }
        assertThatThrownBy(() -> NereidServer.start(options("b", "nope")))
                .isInstanceOf(InferenceException.class)
                .hasMessage("failed to load all models:\n  nope: failed to load 'nope', failed to poll from model"
                        + " repository");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "..",
                ".",
                "a/b",
                "../m",
                "/m",
                "a\\b",
                "a\0b",
                "a\nb",
                " ..",
                ".. ",
                "\t..\n",
                " . ",
                "model/",
                "model/..",
                " ../m "
            })
    void refusesNamesThatAreNone(String name) throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server, name))
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                    .hasMessageStartingWith("invalid model name '")
                    .hasMessageEndingWith("', model name must not contain path traversal characters");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "   ", "\t", "\n", "\r", "\f", "\u000b", " \t \n "})
    void refusesNamesThatAreBlank(String name) throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            assertFails(
                    () -> load(server, name),
                    ErrorCode.INVALID_ARGUMENT,
                    "Model name cannot be empty. Please enter a valid name to deploy.");
        }
    }

    /** As every model that is not loaded, and without a read of the disk. */
    @ParameterizedTest
    @ValueSource(strings = {"", " ", "..", " ..", "../m", "/m", "a\\b", "a\0b", "models/m", "m/"})
    void unloadsNothingUnderANameThatIsNone(String name) throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(options("m"))) {
            unload(server, name);
            unload(server, "n".repeat(100_000));
            assertThat(index(server)).containsExactly("m 1 READY");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"model123", "model  OAI", "model.version1", "...", "..my_model", "model..1", "model....1"})
    void searchesModelsWithUnusualNames(String name) throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            assertFails(
                    () -> load(server, name),
                    ErrorCode.NOT_FOUND,
                    "failed to load '" + name + "', failed to poll from model repository");
        }
    }

    @Test
    void refusesWhatIsNotThere() throws Exception {
        models.recording(".hidden", "");
        Files.writeString(models.root().resolve("file"), "no directory");
        try (NereidServer server = NereidServer.start(options())) {
            for (String name : List.of("nope", ".hidden", "file", "%2e%2e", "n".repeat(255))) {
                assertFails(
                        () -> load(server, name),
                        ErrorCode.NOT_FOUND,
                        "failed to load '" + name + "', failed to poll from model repository");
            }
            assertFails(
                    () -> load(server, ""),
                    ErrorCode.INVALID_ARGUMENT,
                    "Model name cannot be empty. Please enter a valid name to deploy.");
            assertFails(
                    () -> load(server, "n".repeat(256)),
                    ErrorCode.INVALID_ARGUMENT,
                    "invalid model name '" + "n".repeat(256) + "': 256 characters (expected: at most 255)");
            assertThat(index(server)).isEmpty();
            assertThat(server.isReady()).isTrue();
        }
    }

    /** Files outside of the repository are not read, whatever leads there. */
    @Test
    void refusesADirectoryThatIsALinkOutOfTheRepository() throws Exception {
        new TestModels(Files.createDirectories(directory.resolve("elsewhere"))).recording("m", "");
        Files.createSymbolicLink(models.root().resolve("m"), directory.resolve("elsewhere/m"));
        models.recording("real", "");
        Files.createSymbolicLink(models.root().resolve("inside"), models.root().resolve("real"));
        try (NereidServer server = NereidServer.start(options())) {
            assertFails(
                    () -> load(server, "m"),
                    ErrorCode.INVALID_ARGUMENT,
                    "model directory: 'm' (expected: a path below its directory, without '..' and links that leave it):"
                            + " copy what the link leads to, or mount it below the directory");
            load(server, "inside");
            assertThat(infer(server, "inside", 1)).containsExactly(1f);
        }
        assertThat(Files.readString(events)).doesNotContain("m/1");
    }

    @Test
    void reportsALoadThatFails() throws Exception {
        models.recording("m", ALL + parameter("fail_load", "2"), 1, 2);
        models.model("broken", "max_batch_size: x");
        try (NereidServer server = NereidServer.start(options())) {
            assertFails(
                    () -> load(server, "m"),
                    ErrorCode.INVALID_ARGUMENT,
                    "load failed for model 'm': version 2 is at UNAVAILABLE state: Internal: the model's file is"
                            + " broken;\n");

            assertThat(index(server))
                    .contains(
                            "m 1 UNAVAILABLE Unavailable: not served, since another version of this load failed: [2]",
                            "m 2 UNAVAILABLE Internal: the model's file is broken");
            assertThat(events("close")).containsExactly("close m_0_0", "close m/1", "close backend");
            assertThat(server.isReady()).isTrue();
            unload(server, "m");
            assertThat(server.isReady()).isTrue();

            assertThatThrownBy(() -> load(server, "broken"))
                    .hasMessageStartingWith("failed to load 'broken', failed to poll from model repository: failed to"
                            + " read text proto from broken/config.pbtxt: ")
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
            assertThat(index(server)).anyMatch(line -> line.startsWith("broken UNAVAILABLE Internal: failed to read"));
            assertThat(server.isReady()).isTrue();
            unload(server, "broken");
            assertThat(index(server)).contains("broken UNKNOWN");
            assertThat(server.isReady()).isTrue();
        }
    }

    @Test
    void saysThatAPlaceholderWasNotFilledIn() throws Exception {
        models.model("number", "max_batch_size: ${size}");
        models.model("backend", "backend: \"${backend}\"\n" + TestModels.TENSORS);
        models.recording("value", parameter("fail_load", "1") + parameter("dir", "${dir}"));
        models.recording("good", parameter("dir", "${dir}"));
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server, "number"))
                    .hasMessageEndingWith("; looks like a template that was not filled in");
            assertThatThrownBy(() -> load(server, "backend"))
                    .hasMessageEndingWith("; backend: '${backend}' looks like a template that was not filled in;\n");
            assertThatThrownBy(() -> load(server, "value"))
                    .hasMessageEndingWith("the model's file is broken; parameters['dir'].string_value: '${dir}' looks"
                            + " like a template that was not filled in;\n");
            load(server, "good");
        }
    }

    /** Neither in the answer to the load, nor in the index. */
    @Test
    void tellsClientsNoPlacesOfFiles() throws Exception {
        models.recording("m", parameter("fail_with", "VERSION/weights.bin: LIBRARY does not read '/a/known/path'"));
        try (NereidServer server = NereidServer.start(options())) {
            String shown = "Internal: m/1/weights.bin: libvendor.so does not read '/a/known/path'";
            assertFails(
                    () -> load(server, "m"),
                    ErrorCode.INVALID_ARGUMENT,
                    "load failed for model 'm': version 1 is at UNAVAILABLE state: " + shown + ";\n");
            assertThat(index(server)).containsExactly("m 1 UNAVAILABLE " + shown);

            assertThatThrownBy(() -> await(server.control()
                            .load(new ModelControl.Load(
                                    "wire",
                                    Optional.of(CONFIG.formatted(", \"parameters\": {\"fail_with\":"
                                            + " {\"string_value\": \"VERSION/weights.bin: gone\"}}")),
                                    Map.of("1/model.bin", text("new"))))))
                    .hasMessageEndingWith("state: Internal: wire/1/weights.bin: gone;\n");
        }
    }

    @Test
    void tellsClientsNoPlaceOfTheRepository() throws Exception {
        models.recording("m", "");
        Path moved = directory.resolve("moved");
        try (NereidServer server = NereidServer.start(options("m"))) {
            Files.move(models.root(), moved);
            assertThatThrownBy(() -> load(server, "n"))
                    .hasMessageContaining("model repository: cannot list models: no such directory")
                    .hasMessageNotContaining(directory.toString());
            Files.move(moved, models.root());
        }
    }

    @Test
    void triesAFailedLoadAgain() throws Exception {
        models.recording("m", parameter("fail_load", "1"));
        try (NereidServer server = NereidServer.start(options().with(o -> o.loadRetries = 2))) {
            assertThatThrownBy(() -> load(server, "m")).hasMessageContaining("the model's file is broken");
        }
        assertThat(events("load")).hasSize(3);
    }

    @Test
    void keepsWhatHasNotChanged() throws Exception {
        models.recording("m", ALL, 1, 2);
        try (NereidServer server = NereidServer.start(options("m"))) {
            forgetEvents();
            load(server, "m");
            assertThat(events("load")).isEmpty();

            touch(models.root().resolve("m/2"));
            load(server, "m");
            assertThat(events("load")).containsExactly("load m/2 on [cpu]");
            awaitEvents("close", "close m_0_0", "close m/2");

            forgetEvents();
            models.recording("m", ALL, 3);
            load(server, "m");
            assertThat(events("load")).containsExactly("load m/3 on [cpu]");
            assertThat(index(server)).containsExactly("m 1 READY", "m 2 READY", "m 3 READY");

            forgetEvents();
            models.recording("m", ALL + parameter("new", "yes"));
            load(server, "m");
            assertThat(events("load")).hasSize(3);

            forgetEvents();
            models.recording("m", "version_policy { specific { versions: [ 2 ] } }" + parameter("new", "yes"));
            load(server, "m");
            assertThat(events("load")).isEmpty();
            awaitIndex(server, "m 1 UNAVAILABLE unloaded", "m 2 READY", "m 3 UNAVAILABLE unloaded");
        }
    }

    @Test
    void changesInstancesInPlace() throws Exception {
        models.recording("m", "instance_group { count: 1 kind: KIND_CPU }");
        try (NereidServer server = NereidServer.start(options("m"))) {
            infer(server, "m", 1);
            forgetEvents();
            models.recording("m", "instance_group { count: 2 kind: KIND_CPU }");

            load(server, "m");

            assertThat(events("load")).isEmpty();
            assertThat(events("instance")).containsExactly("instance m_0_1 on cpu");
            assertThat(server.models().configJson(ModelRef.latest("m"))).contains("\"count\":2");
            assertThat(infer(server, "m", 2)).containsExactly(2f);
        }
    }

    /** Rows of several clients never meet in an execution of a model whose owner does not want it. */
    @Test
    void doesNotCompleteABatchSizeOfZeroThatIsWritten() throws Exception {
        models.model("auto_file", "backend: \"recording\"\nmax_batch_size: 0\n");
        models.model("auto_json", "backend: \"recording\"\n");
        models.model("auto_none", "backend: \"recording\"\n");
        try (NereidServer server = NereidServer.start(options("auto_file", "auto_none"))) {
            load(server, "auto_json", "{\"backend\": \"recording\", \"max_batch_size\": 0}");

            for (String name : List.of("auto_file", "auto_json")) {
                ModelConfig config = server.models().config(ModelRef.latest(name));
                assertThat(config.getMaxBatchSize()).isZero();
                assertThat(config.hasDynamicBatching()).isFalse();
                assertThat(config.getInput(0).getDimsList()).containsExactly(-1L, -1L);
                assertThat(config.getOutput(0).getDimsList()).containsExactly(-1L, -1L);

                load(server, name, server.models().configJson(ModelRef.latest(name)));
                assertThat(server.models().config(ModelRef.latest(name))).isEqualTo(config);
            }
            ModelConfig completed = server.models().config(ModelRef.latest("auto_none"));
            assertThat(completed.getMaxBatchSize()).isEqualTo(4);
            assertThat(completed.hasDynamicBatching()).isTrue();
        }
    }

    /** The backend proposes 4, and allows 8. */
    @Test
    void keepsAConfiguredBatchSizeWithinTheLimitOfTheBackend() throws Exception {
        models.model("auto_small", "backend: \"recording\"\nmax_batch_size: 2\n");
        models.model("auto_large", "backend: \"recording\"\nmax_batch_size: 8\n");
        models.model("auto_beyond", "backend: \"recording\"\nmax_batch_size: 9\n");
        try (NereidServer server = NereidServer.start(options("auto_small", "auto_large"))) {
            assertThat(server.models().config(ModelRef.latest("auto_small")).getMaxBatchSize())
                    .isEqualTo(2);
            assertThat(server.models().config(ModelRef.latest("auto_large")).getMaxBatchSize())
                    .isEqualTo(8);
            assertThatThrownBy(() -> load(server, "auto_beyond"))
                    .hasMessageContaining("model 'auto_beyond': max_batch_size: 9 (expected: at most 8, which backend"
                            + " 'recording' allows)");
            load(server, "auto_beyond", "{\"backend\": \"recording\", \"max_batch_size\": 8}");
            assertThat(server.models().config(ModelRef.latest("auto_beyond")).getMaxBatchSize())
                    .isEqualTo(8);
        }
    }

    /** The plain load and the poll of what was given keep it too. */
    @Test
    void keepsTheBatchSizeOfZeroThatAClientGave() throws Exception {
        models.model("auto", "backend: \"recording\"\n");
        try (NereidServer server = NereidServer.start(options("auto"))) {
            assertThat(server.models().config(ModelRef.latest("auto")).getMaxBatchSize())
                    .isEqualTo(4);
            load(server, "auto", "{\"backend\": \"recording\", \"max_batch_size\": 0}");
            assertThat(server.models().config(ModelRef.latest("auto")).getMaxBatchSize())
                    .isZero();
            load(server, "auto");
            assertThat(server.models().config(ModelRef.latest("auto")).getMaxBatchSize())
                    .isZero();
            load(server, "auto", "{\"backend\": \"recording\"}");
            assertThat(server.models().config(ModelRef.latest("auto")).getMaxBatchSize())
                    .isEqualTo(4);
        }
    }

    /** A completed setting counts as a written one: backend, name, tensors, batching and all defaults. */
    @Test
    void addsAnInstanceByTheConfigurationThatItServes() throws Exception {
        models.model("auto", "backend: \"recording\"\ninstance_group { count: 1 kind: KIND_CPU }\n");
        try (NereidServer server = NereidServer.start(options("auto"))) {
            infer(server, "auto", 1);
            String served = server.models().configJson(ModelRef.latest("auto"));
            assertThat(served).contains("\"max_batch_size\":4", "\"INPUT0\"", "\"count\":1");
            forgetEvents();

            load(server, "auto", served);
            assertThat(events("load")).isEmpty();
            assertThat(events("instance")).isEmpty();

            load(server, "auto", served.replace("\"count\":1", "\"count\":2"));
            assertThat(events("load")).isEmpty();
            assertThat(events("instance")).containsExactly("instance auto_0_1 on cpu");
            assertThat(events("close")).isEmpty();
            assertThat(server.models().configJson(ModelRef.latest("auto"))).contains("\"count\":2");

            load(server, "auto", served);
            assertThat(events("load")).isEmpty();
            assertThat(server.models().configJson(ModelRef.latest("auto"))).isEqualTo(served);

            load(
                    server,
                    "auto",
                    served.replace("\"max_queue_delay_microseconds\":0", "\"max_queue_delay_microseconds\":1"));
            assertThat(events("load")).as("another setting").hasSize(1);
        }
    }

    /** The file is what the owner has copied from the server. */
    @Test
    void addsAnInstanceByAFileWithTheConfigurationThatItServes() throws Exception {
        models.model("auto", "backend: \"recording\"\ninstance_group { count: 1 kind: KIND_CPU }\n");
        try (NereidServer server = NereidServer.start(options("auto"))) {
            infer(server, "auto", 1);
            ModelConfig served = server.models().config(ModelRef.latest("auto"));
            forgetEvents();
            ModelConfig.Builder more = served.toBuilder();
            more.getInstanceGroupBuilder(0).setCount(2);
            models.model("auto", more.build().toString());

            load(server, "auto");

            assertThat(events("load")).isEmpty();
            assertThat(events("instance")).containsExactly("instance auto_0_1 on cpu");
        }
    }

    @Test
    void loadsFilesOfTheClientThoughItsConfigurationIsTheSame() throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(options())) {
            ModelControl.Load files =
                    new ModelControl.Load("m", Optional.of(CONFIG.formatted("")), Map.of("1/model.bin", text("new")));
            load(server, "m", CONFIG.formatted(""));
            await(server.control().load(files));
            await(server.control().load(files));
            assertThat(events("load")).hasSize(3);
        }
    }

    @Test
    void keepsServingIfAReloadFails() throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(options("m"))) {
            models.recording("m", parameter("fail_load", "1"));
            assertFails(
                    () -> load(server, "m"),
                    ErrorCode.INVALID_ARGUMENT,
                    "load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: the model's file is"
                            + " broken;\n");
            assertThat(index(server)).containsExactly("m 1 READY");
            assertThat(server.isReady()).isTrue();
            assertThat(infer(server, "m", 2)).containsExactly(2f);

            models.model("m", "nonsense");
            assertThatThrownBy(() -> load(server, "m")).hasMessageContaining("m/config.pbtxt");
            assertThat(infer(server, "m", 3)).containsExactly(3f);
            assertThat(server.isReady()).isTrue();
        }
    }

    /** The new generation of version 1 is up when version 3 fails. */
    @Test
    void keepsServingIfTheLastVersionOfAReloadFails() throws Exception {
        models.recording("m", ALL, 1, 2);
        try (NereidServer server = NereidServer.start(options("m"))) {
            forgetEvents();
            models.recording("m", ALL + parameter("fail_load", "3"), 1, 2, 3);

            assertFails(
                    () -> load(server, "m"),
                    ErrorCode.INVALID_ARGUMENT,
                    "load failed for model 'm': version 3 is at UNAVAILABLE state: Internal: the model's file is"
                            + " broken;\n");

            assertThat(events("load")).containsExactly("load m/1 on [cpu]", "load m/2 on [cpu]", "load m/3 on [cpu]");
            assertThat(events("close")).containsExactly("close m_0_0", "close m/2", "close m_0_0", "close m/1");
            assertThat(index(server))
                    .containsExactly("m 1 READY", "m 2 READY", "m 3 UNAVAILABLE Internal: the model's file is broken");
            for (long version : new long[] {1, 2}) {
                assertThat(RecordingObserver.to(server, new ModelRef("m", version), "INPUT0", new long[] {1, 1}, 5)
                                .response()
                                .values())
                        .containsExactly(5f);
            }

            models.recording("m", ALL, 1, 2, 3);
            load(server, "m");
            awaitIndex(server, "m 1 READY", "m 2 READY", "m 3 READY");
        }
    }

    @Test
    void refusesAConfigurationThatIsTooLarge() throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(options("m"))) {
            String large = "{\"backend\": \"" + "x".repeat(16 << 20) + "\"}";
            assertThatThrownBy(() -> load(server, "m", large))
                    .hasMessage("failed to load 'm', failed to poll from model repository: Invalid config override: "
                            + large.length() + " characters (expected: at most 16777216)");
            assertThat(infer(server, "m", 1)).containsExactly(1f);
        }
    }

    @Test
    void countsLoadsAndUnloads() throws Exception {
        models.recording("m", parameter("fail_load", "2"), 1);
        models.model("broken", "nonsense");
        try (NereidServer server = NereidServer.start(options("m"))) {
            touch(models.root().resolve("m/1"));
            load(server, "m");
            models.recording("m", parameter("fail_load", "2"), 2);
            assertThatThrownBy(() -> load(server, "m")).hasMessageContaining("broken");
            assertThatThrownBy(() -> load(server, "broken")).hasMessageContaining("broken/config.pbtxt");
            assertThatThrownBy(() -> load(server, "nope")).hasMessageContaining("'nope'");
            unload(server, "m");
            unload(server, "broken");
            awaitIndex(server, "broken UNKNOWN", "m 1 UNAVAILABLE unloaded", "m 2 UNAVAILABLE unloaded");
            while (server.models().loadCounts().stream().noneMatch(counts -> counts.unloads() == 2)) {
                Thread.onSpinWait(); // until the replaced generation is closed
            }

            assertThat(server.models().loadCounts())
                    .extracting(counts -> counts.model() + " " + counts.loads() + " " + counts.failures() + " "
                            + counts.unloads() + " " + counts.loadTime().isPositive())
                    .containsExactly("broken 0 1 0 false", "m 2 1 2 true");
        }
    }

    @Test
    void countsOnOverAReload() throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(options("m"))) {
            infer(server, "m", 1);
            touch(models.root().resolve("m/1"));
            load(server, "m");
            infer(server, "m", 2);

            assertThat(events("load")).hasSize(2);
            assertThat(server.models().statistics().getFirst().executions().inferenceCount())
                    .isEqualTo(2);
            unload(server, "m");
            load(server, "m");
            assertThat(server.models().statistics().getFirst().executions().inferenceCount())
                    .isEqualTo(2);
        }
    }

    @Test
    void completesItsRequestsBeforeAModelIsUnloaded() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("gate", gate.toString()));
        try (NereidServer server = NereidServer.start(options("m"))) {
            RecordingObserver executing = RecordingObserver.to(server, "m", 1);
            RecordingObserver waiting = RecordingObserver.to(server, "m", 2);

            unload(server, "m");

            assertThat(index(server)).containsExactly("m 1 UNLOADING");
            assertThat(server.isReady()).isFalse();
            assertRefused(server, new ModelRef("m", 1), ErrorCode.UNAVAILABLE, "'m' version 1 is not at ready state");
            assertRefused(server, ModelRef.latest("m"), ErrorCode.NOT_FOUND, "'m' has no available versions");
            Files.delete(gate);
            assertThat(executing.response().values()).containsExactly(1f);
            assertThat(waiting.response().values()).containsExactly(2f);
            awaitIndex(server, "m 1 UNAVAILABLE unloaded");
            assertThat(events("close")).containsExactly("close m_0_0", "close m/1", "close backend");
        }
    }

    /** The third reload waits for the first of the two that drain. */
    @Test
    void letsTwoGenerationsOfAVersionDrain() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("gate", gate.toString()));
        try (NereidServer server = NereidServer.start(options("m"))) {
            RecordingObserver first = RecordingObserver.to(server, "m", 1);
            reload(server);
            RecordingObserver second = RecordingObserver.to(server, "m", 2);
            reload(server);
            RecordingObserver third = RecordingObserver.to(server, "m", 3);
            touch(models.root().resolve("m/1"));

            CompletionStage<Void> waiting = server.control().load(plain("m"));

            assertThat(index(server)).containsExactly("m 1 READY");
            assertThat(waiting.toCompletableFuture()).isNotDone();
            assertThat(events("load")).hasSize(3);
            Files.delete(gate);
            waiting.toCompletableFuture().get();
            assertThat(events("load")).hasSize(4);
            for (RecordingObserver observer : List.of(first, second, third)) {
                assertThat(observer.response().values()).hasSize(1);
            }
        }
    }

    /** An unload never waits, also if a third generation drains with it. */
    @Test
    void unloadsAtOnceWhileTwoGenerationsDrain() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("gate", gate.toString()));
        try (NereidServer server = NereidServer.start(options("m"))) {
            RecordingObserver first = RecordingObserver.to(server, "m", 1);
            reload(server);
            RecordingObserver second = RecordingObserver.to(server, "m", 2);
            reload(server);
            RecordingObserver third = RecordingObserver.to(server, "m", 3);

            unload(server, "m");

            assertThat(index(server)).containsExactly("m 1 UNLOADING");
            assertRefused(server, ModelRef.latest("m"), ErrorCode.NOT_FOUND, "'m' has no available versions");
            Files.delete(gate);
            for (RecordingObserver observer : List.of(first, second, third)) {
                assertThat(observer.response().values()).hasSize(1);
            }
            awaitIndex(server, "m 1 UNAVAILABLE unloaded");
        }
        assertThat(events("close")).filteredOn("close m/1"::equals).hasSize(3);
    }

    @Test
    void stopsWhileALoadWaits() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("gate", gate.toString()));
        try (NereidServer server = NereidServer.start(options("m"))) {
            List<RecordingObserver> requests = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                requests.add(RecordingObserver.to(server, "m", i));
                reload(server);
            }
            touch(models.root().resolve("m/1"));
            CompletionStage<Void> waiting = server.control().load(plain("m"));

            server.beginExit();

            assertFails(() -> await(waiting), ErrorCode.UNAVAILABLE, "Server not ready");
            assertFails(() -> load(server, "m"), ErrorCode.UNAVAILABLE, "Server not ready");
            requests.add(RecordingObserver.to(server, "m", 2));
            Files.delete(gate);
            for (int i = 0; i < 3; i++) {
                assertThat(requests.get(i).response().values()).containsExactly((float) i);
            }
        }
        assertThat(events("load")).hasSize(3);
        assertThat(events("close")).filteredOn("close m/1"::equals).hasSize(3);
    }

    private void reload(NereidServer server) throws Exception {
        touch(models.root().resolve("m/1"));
        load(server, "m");
    }

    @Test
    void loadsOnceForSeveralClients() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("load_gate", gate.toString()));
        try (NereidServer server = NereidServer.start(options())) {
            List<CompletionStage<Void>> loads = Stream.generate(
                            () -> server.control().load(plain("m")))
                    .limit(100)
                    .toList();
            Files.delete(gate);
            for (CompletionStage<Void> load : loads) {
                load.toCompletableFuture().get();
            }
            assertThat(events("load")).hasSize(1);
        }
    }

    @Test
    void showsAModelThatIsGoneAsUnloaded() throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(options("m"))) {
            Files.delete(models.root().resolve("m/config.pbtxt"));
            Files.delete(models.root().resolve("m/1"));
            Files.delete(models.root().resolve("m"));
            assertFails(
                    () -> load(server, "m"),
                    ErrorCode.NOT_FOUND,
                    "failed to load 'm', failed to poll from model repository");
            assertThat(infer(server, "m", 1)).containsExactly(1f);
            unload(server, "m");
            awaitIndex(server, "m 1 UNAVAILABLE unloaded");
            assertRefused(server, ModelRef.latest("m"), ErrorCode.NOT_FOUND, "'m' has no available versions");
            assertFails(
                    () -> load(server, "m"),
                    ErrorCode.NOT_FOUND,
                    "failed to load 'm', failed to poll from model repository");
            assertThat(index(server)).containsExactly("m 1 UNAVAILABLE unloaded");
            assertThat(server.isReady()).isTrue();
        }
    }

    @Test
    void loadsWithAConfigurationOfTheClient() throws Exception {
        models.recording("m", parameter("own", "yes"));
        try (NereidServer server = NereidServer.start(options())) {
            load(server, "m", CONFIG.formatted(""));
            assertThat(server.models().config(ModelRef.latest("m")).getParametersMap())
                    .isEmpty();
            forgetEvents();
            load(server, "m");
            assertThat(events("load")).as("the configuration stays").isEmpty();
            load(server, "m", CONFIG.formatted(""));
            assertThat(events("load")).as("nothing has changed").isEmpty();

            touch(models.root().resolve("m/config.pbtxt"));
            load(server, "m");
            assertThat(server.models().config(ModelRef.latest("m")).getParametersMap())
                    .containsKey("own");

            load(server, "m", CONFIG.formatted(""));
            unload(server, "m");
            load(server, "m");
            assertThat(server.models().config(ModelRef.latest("m")).getParametersMap())
                    .containsKey("own");
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "x",
                "",
                "[]",
                "{",
                "{} {}",
                "{\"unknown\": 1}",
                "{\"max_batch_size\": \"many\"}",
                "{'max_batch_size': 1}",
                "{\"version_policy\": 3}"
            })
    void refusesAConfigurationThatIsNone(String config) throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(options("m"))) {
            assertThatThrownBy(() -> load(server, "m", config))
                    .isInstanceOfSatisfying(InferenceException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL);
                        assertThat(e.isClientError()).isTrue();
                    })
                    .hasMessageStartingWith(
                            "failed to load 'm', failed to poll from model repository: Invalid config override: ");
            assertThat(infer(server, "m", 1)).containsExactly(1f);
        }
    }

    @Test
    void loadsFilesOfTheClient() throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            Map<String, ByteBuffer> files = Map.of("1/model.bin", text("new"), "labels.txt", text("a\nb"));
            await(server.control().load(new ModelControl.Load("wire", Optional.of(CONFIG.formatted("")), files)));

            assertThat(infer(server, "wire", 1)).containsExactly(1f);
            assertThat(overrides()).anyMatch(file -> file.endsWith("wire/1/model.bin"));
            assertThat(index(server)).containsExactly("wire 1 READY");

            await(server.control().load(new ModelControl.Load("wire", Optional.of(CONFIG.formatted("")), files)));
            while (overrides().stream()
                            .filter(file -> file.endsWith("labels.txt"))
                            .count()
                    > 1) {
                Thread.onSpinWait(); // until the first generation is closed
            }
            unload(server, "wire");
            awaitIndex(server, "wire 1 UNAVAILABLE unloaded");
            assertThat(overrides()).noneMatch(file -> file.contains("wire"));
        }
        assertThat(overrides()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "../escaped",
                "1/../../escaped",
                "/etc/escaped",
                "1/./x",
                "a\\b",
                "",
                "1//../x",
                "a\0b",
                "..",
                "./x"
            })
    void refusesFilesThatLeaveTheModel(String path) throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> await(server.control()
                            .load(new ModelControl.Load(
                                    "m",
                                    Optional.of(CONFIG.formatted("")),
                                    Map.of("1/good", text("good"), path, text("bad"))))))
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
                    .hasMessageStartingWith(
                            "failed to load 'm', failed to poll from model repository: file override: '")
                    .hasMessageContaining("expected: a path below its directory");
            assertThat(overrides()).noneMatch(file -> file.contains("good"));
        }
        try (Stream<Path> all = Files.walk(directory)) {
            assertThat(all).noneMatch(file -> file.endsWith("escaped"));
        }
        assertThat(Path.of("/etc/escaped")).doesNotExist();
    }

    @Test
    void refusesFilesWhosePathsAreTooLong() throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            for (String path : List.of("n".repeat(256), "é".repeat(128), "d/".repeat(32) + "file")) {
                assertThatThrownBy(() -> await(server.control()
                                .load(new ModelControl.Load(
                                        "m", Optional.of(CONFIG.formatted("")), Map.of(path, text("x"))))))
                        .isInstanceOfSatisfying(
                                InferenceException.class,
                                e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
                        .hasMessageStartingWith(
                                "failed to load 'm', failed to poll from model repository: file override: '")
                        .hasMessageContaining("(expected: ");
            }
        }
    }

    @Test
    void refusesFilesThatExcludeEachOther() throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> await(server.control()
                            .load(new ModelControl.Load(
                                    "m",
                                    Optional.of(CONFIG.formatted("")),
                                    Map.of("1", text("a file"), "1/model.bin", text("below it"))))))
                    .hasMessageStartingWith(
                            "failed to load 'm', failed to poll from model repository: file override: '1/model.bin'");
            assertFails(
                    () -> await(server.control()
                            .load(new ModelControl.Load("m", Optional.empty(), Map.of("x", text("y"))))),
                    ErrorCode.INTERNAL,
                    "failed to load 'm', failed to poll from model repository: Load parameter 'config' must be"
                            + " specified for model file override");
            assertThat(overrides()).noneMatch(file -> file.contains("model.bin"));
        }
    }

    private static ByteBuffer text(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)).asReadOnlyBuffer();
    }

    /** Lists the files of clients. Lists again if one was removed meanwhile. */
    private List<String> overrides() throws IOException {
        Path work = directory.resolve("work");
        while (Files.exists(work)) {
            try (Stream<Path> all = Files.walk(work)) {
                return all.map(Path::toString)
                        .filter(file -> file.contains("overrides-"))
                        .toList();
            } catch (UncheckedIOException e) {
                assertThat(e.getCause()).isInstanceOf(NoSuchFileException.class);
            }
        }
        return List.of();
    }

    private static List<Float> infer(NereidServer server, String model, float value) {
        return RecordingObserver.to(server, model, value).response().values();
    }

    private static ModelControl.Load plain(String model) {
        return new ModelControl.Load(model, Optional.empty(), Map.of());
    }

    private static void load(NereidServer server, String model) throws Exception {
        await(server.control().load(plain(model)));
    }

    private static void load(NereidServer server, String model, String config) throws Exception {
        await(server.control().load(new ModelControl.Load(model, Optional.of(config), Map.of())));
    }

    private static void unload(NereidServer server, String model) throws Exception {
        await(server.control().unload(model, false));
    }

    private static void await(CompletionStage<Void> stage) throws Exception {
        try {
            stage.toCompletableFuture().get();
        } catch (ExecutionException e) {
            throw e.getCause() instanceof InferenceException failure ? failure : e;
        }
    }

    private static List<String> index(NereidServer server) throws Exception {
        return server.control().index().toCompletableFuture().get().stream()
                .map(ModelControlTest::describe)
                .toList();
    }

    private static String describe(ModelStatus status) {
        String version = status.version().isPresent() ? " " + status.version().getAsLong() : "";
        return (status.name() + version + " " + status.state() + " " + status.reason()).strip();
    }

    private static void awaitIndex(NereidServer server, String... lines) throws Exception {
        while (!index(server).equals(List.of(lines))) {
            Thread.onSpinWait(); // until the last generation is closed
        }
    }

    private static void assertRefused(NereidServer server, ModelRef model, ErrorCode code, String text) {
        RecordingObserver observer = RecordingObserver.to(server, model, "INPUT0", new long[] {1, 1}, 1);
        assertThat(observer.error().publicMessage()).isEqualTo("Request for unknown model: " + text);
        assertThat(observer.error().code()).isEqualTo(code);
    }

    private interface Action {
        void run() throws Exception;
    }

    private static void assertFails(Action action, ErrorCode code, String message) {
        assertThatThrownBy(action::run)
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(code))
                .hasMessage(message);
    }

    private static void touch(Path file) throws IOException {
        Instant next = Files.getLastModifiedTime(file).toInstant().plusSeconds(1);
        Files.setLastModifiedTime(file, FileTime.from(next));
    }

    private void forgetEvents() throws IOException {
        Files.writeString(events, ""); // emptied, since a close may be added at any time
    }

    private List<String> events(String first) throws IOException {
        return Files.readAllLines(events).stream()
                .filter(event -> event.startsWith(first + " "))
                .toList();
    }

    private void awaitEvents(String first, String... expected) throws IOException {
        while (!events(first).equals(List.of(expected))) {
            Thread.onSpinWait();
        }
    }

    private ServerOptions options(String... startup) {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .with(o -> o.pluginCache = directory.resolve("work"))
                .withBackendSetting("recording", "events", events.toString())
                .with(o -> {
                    o.explicit(startup);
                    o.processors = 2;
                });
    }
}
