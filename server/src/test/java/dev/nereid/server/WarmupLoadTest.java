package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Models that are warmed up when they are loaded. */
final class WarmupLoadTest {
    private static final String RECORD = parameter("record", "yes");

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
    void warmsEveryInstanceBeforeReady() throws Exception {
        models.recording(
                "m",
                RECORD + "instance_group { count: 2 kind: KIND_CPU }\n" + warmup("a", "batch_size: 3 count: 2", "4"));

        try (NereidServer server = NereidServer.startLoading(options())) {
            server.awaitModels();
            assertThat(server.models().isReady(ModelRef.latest("m"))).isTrue();
            List<String> executions = events("execute");
            assertThat(executions)
                    .containsExactlyInAnyOrder(
                            "execute 3 on m_0_0", "execute 3 on m_0_0", "execute 3 on m_0_1", "execute 3 on m_0_1");
            assertThat(server.memory().bytesInUse()).isZero();
            assertThat(RecordingObserver.to(server, "m", 1, 2).response().values())
                    .containsExactly(1f, 2f);
        }
    }

    @Test
    void countsNothingOfIt() throws Exception {
        models.recording("m", RECORD + warmup("a", "batch_size: 3 count: 2", "4"));

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(events("execute")).hasSize(2);
            ModelStatistics statistics = server.models().statistics().getFirst();
            assertThat(statistics.executions().inferenceCount()).isZero();
            assertThat(statistics.executions().executionCount()).isZero();
            assertThat(statistics.executions().lastInferenceMillis()).isZero();
            assertThat(statistics.executions().batches()).isEmpty();
            assertThat(statistics.inferences().success().count()).isZero();
        }
    }

    /** The server supplies what a first request of a sequence has: the client of such a model sends no controls either. */
    @Test
    void suppliesTheControlsAndStatesOfASequence() throws Exception {
        models.recording("m", RECORD + """
                        sequence_batching {
                          control_input [
                            { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] },
                            { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] }
                          ]
                          state [ { input_name: "IN_STATE" output_name: "OUT_STATE" data_type: TYPE_FP32 dims: [ 1 ] } ]
                        }
                        """ + warmup("a", "batch_size: 1", "1"));

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.isReady()).isTrue();
            assertThat(events("execute")).containsExactly("execute 1 on m_0_0");
        }
    }

    @Test
    void leavesPassiveInstancesCold() throws Exception {
        models.recording(
                "m",
                RECORD
                        + "instance_group [ { name: \"a\" kind: KIND_CPU }, { name: \"b\" kind: KIND_CPU passive: true } ]\n"
                        + warmup("s", "batch_size: 1", "1"));

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.isReady()).isTrue();
            assertThat(events("execute")).containsExactly("execute 1 on a_0");
        }
        assertThat(events("close")).contains("close b_0");
    }

    @Test
    void failsTheLoadWithTheNameOfTheSample() throws Exception {
        models.recording(
                "m",
                RECORD + parameter("fail_execute", "m_0_1") + "instance_group { count: 2 kind: KIND_CPU }\n"
                        + warmup("good and bad", "batch_size: 2", "1"));
        models.recording("other", "");

        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            ModelStatus status = server.models().index().getFirst();
            assertThat(status.state()).isEqualTo(ModelStatus.State.UNAVAILABLE);
            assertThat(status.reason())
                    .isEqualTo(
                            "Invalid argument: failed to run warmup sample 'good and bad': broken m_0_1; broken m_0_1; ");
            assertThat(events("close m")).containsExactlyInAnyOrder("close m_0_0", "close m_0_1", "close m/1");
            assertThat(events("close m")).endsWith("close m/1");
            assertThat(server.memory().bytesInUse()).isZero();
            assertThat(RecordingObserver.to(server, "other", 5).response().values())
                    .containsExactly(5f);
        }
    }

    @Test
    void readsFilesBeforeTheInstancesRun() throws Exception {
        models.recording(
                "m",
                RECORD
                        + warmup("a", "batch_size: 1", "1")
                        + warmup("b", "batch_size: 1", "1").replace("zero_data: true", "input_data_file: \"gone\""));

        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            assertThat(server.models().index().getFirst().reason())
                    .isEqualTo(
                            "Internal: failed to run warmup sample 'b': failed to open text file for read gone: No such file or"
                                    + " directory; ");
            assertThat(events("execute")).isEmpty();
            assertThat(events("close")).containsExactly("close m_0_0", "close m/1", "close backend");
            assertThat(server.memory().bytesInUse()).isZero();
        }
    }

    @Test
    void endsEarlyWithTheServer() throws Exception {
        models.recording("m", RECORD + warmup("a", "batch_size: 1 count: 100000", "1"));
        models.recording("n", RECORD + warmup("a", "batch_size: 1 count: 100000", "1"));

        NereidServer server = NereidServer.startLoading(options());
        while (!Files.exists(events) || events("execute").isEmpty()) {
            Thread.onSpinWait();
        }
        server.closeWithin(Duration.ofSeconds(30)); // would throw if the time were over

        assertThat(server.models().index().getFirst().reason())
                .isEqualTo("Unavailable: warm-up of model 'm' ended: its instances are closed");
        assertThat(events("close")).containsExactly("close m_0_0", "close m/1", "close backend");
    }

    @Test
    void takesTheContentOfAFile() throws Exception {
        models.recording(
                "m", RECORD + warmup("a", "batch_size: 1", "2").replace("zero_data: true", "input_data_file: \"in\""));
        Files.createDirectories(models.root().resolve("m/warmup"));
        Files.write(models.root().resolve("m/warmup/in"), new byte[8]);

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(events("execute")).hasSize(1);
            assertThat(server.isReady()).isTrue();
        }
    }

    private static String warmup(String name, String setting, String dims) {
        return """
                model_warmup { name: "%s" %s inputs {
                  key: "INPUT0" value { data_type: TYPE_FP32 dims: [ %s ] zero_data: true } } }
                """.formatted(name, setting, dims);
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting("recording", "events", events.toString())
                .with(o -> {
                    o.loadThreads = 1;
                    o.processors = 2;
                });
    }

    private List<String> events(String kind) throws IOException {
        return Files.readAllLines(events).stream()
                .filter(line -> line.startsWith(kind))
                .toList();
    }
}
