package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests models whose requests of different shapes share a batch, from configuration to response. */
final class RaggedModelTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    private static final String TENSORS = """
            backend: "ragged" max_batch_size: 8 dynamic_batching {}
            input { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
            output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
            instance_group { count: 1 kind: KIND_CPU }
            """;
    private static final String DERIVED = """
            batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ENDS" data_type: TYPE_INT32
                          source_input: "INPUT0" }
            batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "OUTPUT0" source_input: "INPUT0" }
            """;

    @TempDir
    private Path directory;

    private Path gate;
    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        TestPlugins.ragged(Files.createDirectories(directory.resolve("plugins")));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        gate = Files.createFile(directory.resolve("gate"));
    }

    @Test
    void respondsToRequestsOfDifferentLengthsFromOneExecution() throws Exception {
        models.model("m", TENSORS + DERIVED + parameter("gate", gate.toString()));
        try (NereidServer server = NereidServer.start(options())) {
            RecordingObserver first = RecordingObserver.to(server, "m", 7);
            await(() -> statistics(server).metrics().pending() == 0); // the only instance has it, and waits
            RecordingObserver three = RecordingObserver.to(server, "m", 1, 2, 3);
            RecordingObserver two =
                    RecordingObserver.to(server, ModelRef.latest("m"), "INPUT0", new long[] {2, 1}, 4, 5);
            RecordingObserver none = RecordingObserver.to(server, "m");
            RecordingObserver last = RecordingObserver.to(server, "m", 6);
            Files.delete(gate);

            assertResponse(first, Shape.of(1, 1), 7);
            assertResponse(three, Shape.of(1, 3), 1, 2, 3);
            assertResponse(two, Shape.of(2, 1), 104, 105);
            assertResponse(none, Shape.of(1, 0));
            assertResponse(last, Shape.of(1, 1), 306);
            assertThat(statistics(server).executions().executionCount()).isEqualTo(2);
            assertThat(statistics(server).executions().batches())
                    .extracting(BatchStatistics::batchSize)
                    .containsExactly(1L, 5L);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void refusesClientsThatSendADerivedInput() throws Exception {
        models.model("m", TENSORS + DERIVED + parameter("gate", gate.toString()));
        try (NereidServer server = NereidServer.start(options())) {
            RecordingObserver observer =
                    RecordingObserver.to(server, ModelRef.latest("m"), "ENDS", new long[] {1, 1}, 1);

            assertThat(observer.error().code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(observer.error().publicMessage()).contains("ENDS");
        }
    }

    @Test
    void refusesAConfigurationThatDerivesFromNothing() throws Exception {
        models.model("m", TENSORS + DERIVED.replace("source_input: \"INPUT0\"", "source_input: \"INPUT1\""));

        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            assertThat(server.models().index())
                    .extracting(ModelStatus::reason)
                    .containsExactly("Invalid argument: unknown source input name 'INPUT1' for m");
        }
    }

    private static void assertResponse(RecordingObserver observer, Shape shape, float... values) {
        assertThat(observer.shape()).isEqualTo(shape);
        assertThat(observer.response().values()).hasSize(values.length);
        for (int i = 0; i < values.length; i++) {
            assertThat(observer.response().values().get(i)).isEqualTo(values[i]);
        }
    }

    private static ModelStatistics statistics(NereidServer server) {
        return server.models().statistics(ModelRef.latest("m")).getFirst();
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> o.processors = 2);
    }

    private static void await(BooleanSupplier condition) {
        long giveUp = System.nanoTime() + TIMEOUT.toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("time is over").isLessThan(giveUp);
            Thread.onSpinWait();
        }
    }
}
