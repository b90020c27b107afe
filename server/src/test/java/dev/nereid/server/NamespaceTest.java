package dev.nereid.server;

import static dev.nereid.server.TestControl.awaitIndex;
import static dev.nereid.server.TestControl.index;
import static dev.nereid.server.TestControl.load;
import static dev.nereid.server.TestControl.unload;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.LoadCounts;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Models of different repositories with the same name. */
@Timeout(120)
final class NamespaceTest {
    private static final String AMBIGUOUS =
            "There are 2 identifiers of model 'same' in global map, model namespace must be provided to resolve"
                    + " ambiguity.";

    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels one;
    private TestModels two;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        one = new TestModels(Files.createDirectories(directory.resolve("one")));
        two = new TestModels(Files.createDirectories(directory.resolve("two")));
        TestPlugins.recording(plugins);
        one.recording("same", "").recording("first", "");
        two.recording("same", "", 3).recording("second", "");
    }

    @Test
    void servesModelsOfOneNameAndRefusesRequestsThatMayMeanBoth() throws Exception {
        try (NereidServer server = NereidServer.start(options(ModelControlMode.NONE))) {
            assertThat(index(server))
                    .containsExactly("first 1 READY", "same 1 READY", "same 3 READY", "second 1 READY");
            assertThat(server.isReady()).isTrue();
            assertThat(infer(server, "first")).containsExactly(7f);
            assertThat(infer(server, "second")).containsExactly(7f);

            RecordingObserver observer =
                    RecordingObserver.to(server, ModelRef.latest("same"), "INPUT0", new long[] {1, 1}, 1);
            assertThat(observer.error().publicMessage()).isEqualTo(AMBIGUOUS);
            assertThat(observer.error().code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            for (ModelRef ref : List.of(ModelRef.latest("same"), new ModelRef("same", 3))) {
                assertAmbiguous(() -> server.models().config(ref));
                assertAmbiguous(() -> server.models().metadata(ref));
                assertAmbiguous(() -> server.models().isReady(ref));
                assertAmbiguous(() -> server.models().statistics(ref));
            }
            assertAmbiguous(() -> server.updateInstances("same"));
        }
    }

    /** No two series of a metric have the same labels. */
    @Test
    void namesTheNamespaceInTheLabelsOfMetrics() throws Exception {
        try (NereidServer server = NereidServer.start(options(ModelControlMode.NONE))) {
            assertThat(server.models().statistics())
                    .extracting(ModelStatistics::model)
                    .doesNotHaveDuplicates()
                    .filteredOn(model -> model.name().equals("same"))
                    .extracting(model -> model.tags())
                    .containsExactly(
                            Map.of("namespace", one.root().toString()),
                            Map.of("namespace", two.root().toString()));
        }
    }

    @Test
    void loadsAndUnloadsAllModelsOfAName() throws Exception {
        try (NereidServer server = NereidServer.start(options(ModelControlMode.EXPLICIT))) {
            assertThat(index(server))
                    .containsExactly("first UNKNOWN", "same UNKNOWN", "same UNKNOWN", "second UNKNOWN");

            load(server, "same");

            assertThat(index(server))
                    .containsExactly("first UNKNOWN", "same 1 READY", "same 3 READY", "second UNKNOWN");
            assertThatThrownBy(() -> load(server, "same", "{\"backend\": \"recording\"}", Map.of()))
                    .isInstanceOf(InferenceException.class)
                    .hasMessageStartingWith("There are 2 identifiers of model 'same'");
            TestControl.force(server, "same");
            assertThat(server.models().loadCounts())
                    .filteredOn(counts -> counts.model().equals("same"))
                    .extracting(LoadCounts::loads)
                    .as("each model twice")
                    .containsExactly(4L);
            load(server, "first");
            assertThat(infer(server, "first")).containsExactly(7f);

            unload(server, "same");
            awaitIndex(
                    server,
                    "first 1 READY",
                    "same 1 UNAVAILABLE unloaded",
                    "same 3 UNAVAILABLE unloaded",
                    "second UNKNOWN");
            assertThatThrownBy(() -> load(server, "nope"))
                    .hasMessage("failed to load 'nope', failed to poll from model repository");
            assertThat(server.isReady()).isTrue();
        }
    }

    @Test
    void loadsTheNamesOfTheStart() throws Exception {
        ServerOptions options = options(ModelControlMode.EXPLICIT).with(o -> o.explicit("same"));
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(index(server))
                    .containsExactly("first UNKNOWN", "same 1 READY", "same 3 READY", "second UNKNOWN");
            assertThat(server.isReady()).isTrue();
        }
    }

    /** A failure of one says nothing about the other. */
    @Test
    void keepsTheModelsOfANameApart() throws Exception {
        two.recording("same", TestModels.parameter("fail_load", "3"), 3);
        try (NereidServer server =
                NereidServer.start(options(ModelControlMode.NONE).with(o -> o.exitOnError = false))) {
            assertThat(index(server))
                    .containsExactly(
                            "first 1 READY",
                            "same 1 READY",
                            "same 3 UNAVAILABLE Internal: the model's file is broken",
                            "second 1 READY");
            assertAmbiguous(() -> server.models().config(ModelRef.latest("same")));
        }
    }

    @Test
    void followsEachRepository() throws Exception {
        try (NereidServer server = NereidServer.start(options(ModelControlMode.POLL))) {
            assertThat(index(server))
                    .containsExactly("first 1 READY", "same 1 READY", "same 3 READY", "second 1 READY");

            Files.delete(two.root().resolve("same/3"));
            Files.delete(two.root().resolve("same/config.pbtxt"));
            Files.delete(two.root().resolve("same"));

            awaitIndex(server, "first 1 READY", "same 1 READY", "second 1 READY");
            assertThat(infer(server, "same")).containsExactly(7f);

            one.recording("second", "", 5);
            awaitIndex(server, "first 1 READY", "same 1 READY", "second 5 READY", "second 1 READY");
        }
    }

    private static List<Float> infer(NereidServer server, String model) {
        return RecordingObserver.to(server, model, 7).response().values();
    }

    private interface Action {
        void run() throws Exception;
    }

    private static void assertAmbiguous(Action action) {
        assertThatThrownBy(action::run)
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessage(AMBIGUOUS);
    }

    private ServerOptions options(ModelControlMode mode) {
        return ServerOptions.of(one.root(), two.root())
                .withPlugins(plugins)
                .with(o -> o.hasNamespaces = true)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.controlMode = mode;
                    o.pollInterval = Duration.ofMillis(20);
                    o.stabilityWindow = Duration.ofMillis(20);
                    o.processors = 2;
                });
    }
}
