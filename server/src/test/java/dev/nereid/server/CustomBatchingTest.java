package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.Shape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Plugins whose models have a batching strategy of their own. */
final class CustomBatchingTest {
    private static final String DYNAMIC = "dynamic_batching {}\n" + parameter("strategy", "yes");

    @TempDir
    private Path directory;

    private Path plugins;
    private Path events;
    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        events = directory.resolve("events");
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
    }

    @Test
    void theModelMakesItsStrategyOnce() throws Exception {
        models.recording("m", DYNAMIC + "instance_group { count: 2 kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.isReady()).isTrue();
            assertThat(Files.readAllLines(events))
                    .containsExactly(
                            "create",
                            "complete m/1",
                            "load m/1 on [cpu, cpu]",
                            "batching m/1",
                            "instance m_0_0 on cpu",
                            "instance m_0_1 on cpu");
        }
    }

    @Test
    void closesTheStrategyBeforeTheModel() throws Exception {
        models.recording("m", DYNAMIC);

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(RecordingObserver.to(server, "m", 1, 2).response().values())
                    .containsExactly(1f, 2f);
        }

        assertThat(Files.readAllLines(events))
                .endsWith(
                        "begin under its own class loader",
                        "include [1,2]",
                        "close m_0_0",
                        "close strategy of m/1",
                        "close m/1",
                        "close backend");
    }

    @Test
    void closesTheStrategyWhenTheLoadFailsLater() throws Exception {
        models.recording(
                "m", DYNAMIC + "instance_group { count: 2 kind: KIND_CPU }\n" + parameter("fail_instance", "m_0_1"));

        assertReason("m", "Unavailable: no memory for an instance");

        assertThat(Files.readAllLines(events))
                .endsWith("close m_0_0", "close strategy of m/1", "close m/1", "close backend");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "fail | Unavailable: no table of costs",
                "null | Internal: plugin 'recording': Model.batching returned null",
                "crash | Internal: plugin 'recording': Model.batching failed: java.lang.NoClassDefFoundError: Missing"
            })
    void failsTheLoadWhenTheStrategyCannotBeMade(String strategy, String reason) throws Exception {
        models.recording("m", "dynamic_batching {}\n" + parameter("strategy", strategy));

        assertReason("m", reason);

        assertThat(Files.readAllLines(events)).endsWith("batching m/1", "close m/1", "close backend");
    }

    @Test
    void ignoresTheStrategyWithoutDynamicBatching() throws Exception {
        models.recording("m", parameter("strategy", "yes"));

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(RecordingObserver.to(server, "m", 1).response().values()).containsExactly(1f);
        }

        assertThat(Files.readAllLines(events))
                .containsSubsequence("batching m/1", "close strategy of m/1", "instance m_0_0 on cpu")
                .doesNotContain("begin under its own class loader");
    }

    @Test
    void formsBatchesByTheDocumentedStrategy() throws Exception {
        TestPlugins.documentedStrategy(plugins);
        models.model("m", """
                backend: "budget" max_batch_size: 8
                dynamic_batching { max_queue_delay_microseconds: 3600000000 }
                input { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
                output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
                batch_output { target_name: "OUTPUT0" source_input: "INPUT0" }
                """);
        RecordingObserver last;
        try (NereidServer server = NereidServer.start(options())) {
            RecordingObserver first = RecordingObserver.to(server, "m", new float[600]);
            RecordingObserver second = RecordingObserver.to(server, "m", new float[300]);
            RecordingObserver third = RecordingObserver.to(server, "m", new float[200]);

            assertThat(first.shape()).isEqualTo(Shape.of(1, 600));
            assertThat(second.shape()).isEqualTo(Shape.of(1, 300));
            last = RecordingObserver.to(server, "m", new float[900]);
            assertThat(third.shape()).isEqualTo(Shape.of(1, 200));
            assertThat(server.models()
                            .statistics(ModelRef.latest("m"))
                            .getFirst()
                            .executions()
                            .batches())
                    .extracting(
                            BatchStatistics::batchSize,
                            batch -> batch.compute().infer().count())
                    .containsExactly(tuple(1L, 1L), tuple(2L, 1L));
        }
        assertThat(last.shape()).isEqualTo(Shape.of(1, 900));
    }

    private void assertReason(String model, String reason) throws Exception {
        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            List<ModelStatus> index = server.models().index();
            assertThat(index).extracting(ModelStatus::name).containsExactly(model);
            assertThat(index).extracting(ModelStatus::reason).containsExactly(reason);
        }
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting("recording", "events", events.toString())
                .with(o -> o.processors = 2);
    }
}
