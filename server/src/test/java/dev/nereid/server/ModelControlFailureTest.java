package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests the models and the state of the server after requests of clients that fail, or come all at once. */
@Timeout(120)
final class ModelControlFailureTest {
    private static final String CONFIG = """
            {"backend": "recording", "max_batch_size": 8, "instance_group": [{"kind": "KIND_CPU", "count": 1}],
             "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
             "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
             "parameters": {%s}}
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

    /** The third load waits for the first of the two that drain, although nothing serves meanwhile. */
    @Test
    void letsTwoGenerationsDrainAfterUnloads() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("gate", gate.toString()));
        try (NereidServer server = NereidServer.start(options("m"))) {
            RecordingObserver first = RecordingObserver.to(server, "m", 1);
            unload(server, "m");
            load(server, "m");
            RecordingObserver second = RecordingObserver.to(server, "m", 2);
            unload(server, "m");

            CompletionStage<Void> waiting = server.control().load(plain("m"));

            assertThat(index(server)).containsExactly("m 1 UNLOADING");
            assertThat(waiting.toCompletableFuture()).isNotDone();
            assertThat(events("load")).hasSize(2);
            Files.delete(gate);
            await(waiting);
            assertThat(events("load")).hasSize(3);
            assertThat(first.response().values()).containsExactly(1f);
            assertThat(second.response().values()).containsExactly(2f);
        }
    }

    @Test
    void forgetsModelsThatOnlyAFailedRequestNames() throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            assertFails(
                    server, given("ghost", CONFIG.formatted(""), Map.of("../x", text(""))), "expected: a path below");
            assertThat(server.models().index()).isEmpty();
            assertThat(server.isReady()).isTrue();

            String broken = CONFIG.formatted("\"fail_load\": {\"string_value\": \"1\"}");
            assertFails(server, given("ghost", broken, Map.of("1/model.bin", text("x"))), "the model's file is broken");
            assertThat(server.models().index()).isEmpty();
            assertThat(server.isReady()).isTrue();

            String wrong = CONFIG.formatted("").replace("recording", "nope");
            assertFails(server, given("ghost", wrong, Map.of("1/model.bin", text("x"))), "ghost");
            assertFails(server, given("ghost", "{\"name\": \"other\"}", Map.of("1/x", text("x"))), "ghost");
            assertThat(server.models().index()).isEmpty();
            assertThat(server.isReady()).isTrue();
        }
    }

    /** The list that the index shows is the one that the readiness counts. */
    @Test
    void forgetsFailedModelsThatAreGone() throws Exception {
        models.model("broken", "nonsense");
        try (NereidServer server = NereidServer.start(options())) {
            assertFails(server, plain("broken"), "broken/config.pbtxt");
            assertThat(server.isReady()).isTrue();
            Files.delete(models.root().resolve("broken/config.pbtxt"));
            Files.delete(models.root().resolve("broken/1"));
            Files.delete(models.root().resolve("broken"));

            assertThat(index(server)).isEmpty();
            assertThat(server.isReady()).isTrue();
        }
    }

    @Test
    void keepsTheStateOfAModelIfARequestIsWrong() throws Exception {
        models.recording("m", "");
        models.recording("failed", parameter("fail_load", "1"));
        String other = CONFIG.formatted("").replace("\"backend\"", "\"name\": \"other\", \"backend\"");
        try (NereidServer server = NereidServer.start(options())) {
            assertFails(server, given("m", other, Map.of()), "other");
            assertThat(index(server)).containsExactly("failed UNKNOWN", "m UNKNOWN");
            assertThat(server.isReady()).isTrue();

            assertFails(server, plain("failed"), "the model's file is broken");
            List<String> before = index(server);
            assertFails(server, given("failed", other, Map.of()), "other");
            assertFails(server, given("failed", CONFIG.formatted(""), Map.of("/x", text(""))), "expected: a path");
            assertThat(index(server)).isEqualTo(before);
        }
    }

    @Test
    void loadsOnceForEqualRequests() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("load_gate", gate.toString()));
        try (NereidServer server = NereidServer.start(options())) {
            List<CompletionStage<Void>> loads = new ArrayList<>();
            loads.add(server.control().load(plain("m")));
            for (int i = 0; i < 100; i++) {
                loads.add(server.control().load(given("m", CONFIG.formatted(""), Map.of())));
            }
            for (int i = 0; i < 100; i++) {
                loads.add(server.control().load(given("m", CONFIG.formatted(""), Map.of("1/x", text("same")))));
            }
            loads.add(server.control().load(given("m", CONFIG.formatted(""), Map.of("1/x", text("else")))));
            Files.delete(gate);
            for (CompletionStage<Void> load : loads) {
                await(load);
            }
            assertThat(events("load")).hasSize(4);
        }
    }

    private static void assertFails(NereidServer server, ModelControl.Load load, String text) {
        assertThatThrownBy(() -> await(server.control().load(load)))
                .isInstanceOf(InferenceException.class)
                .hasMessageContaining(text);
    }

    private static ByteBuffer text(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)).asReadOnlyBuffer();
    }

    private static ModelControl.Load plain(String model) {
        return new ModelControl.Load(model, Optional.empty(), Map.of());
    }

    private static ModelControl.Load given(String model, String config, Map<String, ByteBuffer> files) {
        return new ModelControl.Load(model, Optional.of(config), files);
    }

    private static void load(NereidServer server, String model) throws Exception {
        await(server.control().load(plain(model)));
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
                .map(ModelControlFailureTest::describe)
                .toList();
    }

    private static String describe(ModelStatus status) {
        String version = status.version().isPresent() ? " " + status.version().getAsLong() : "";
        return (status.name() + version + " " + status.state() + " " + status.reason()).strip();
    }

    private List<String> events(String first) throws IOException {
        return Files.readAllLines(events).stream()
                .filter(event -> event.startsWith(first + " "))
                .toList();
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
