package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests a plugin of one asynchronous function in a server. */
final class AsyncFunctionTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    private static final Duration DELAY = Duration.ofMillis(500);
    private static final int REQUESTS = 40;

    @TempDir
    private Path directory;

    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        TestPlugins.documentedFunction(Files.createDirectories(directory.resolve("plugins")));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
    }

    @Test
    void manyRequestsWaitOnOneInstance() throws Exception {
        model("m", parameter("delay", Long.toString(DELAY.toMillis())));
        try (NereidServer server = NereidServer.start(options())) {
            long start = System.nanoTime();
            List<RecordingObserver> observers = new ArrayList<>();
            for (int i = 0; i < REQUESTS; i++) {
                observers.add(RecordingObserver.to(server, "m", i));
            }

            for (int i = 0; i < REQUESTS; i++) {
                assertThat(observers.get(i).response().values()).containsExactly((float) i);
            }
            // One after another would take twenty seconds.
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isBetween(DELAY, DELAY.multipliedBy(REQUESTS / 2));
            assertThat(statistics(server).executions().executionCount()).isEqualTo(REQUESTS);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void aBatchRespondsTogether() throws Exception {
        model("m", parameter("delay", "20") + """
                dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 3600000000 }
                """);
        try (NereidServer server = NereidServer.start(options())) {
            RecordingObserver one = RecordingObserver.to(server, "m", 1);
            RecordingObserver two = RecordingObserver.to(server, "m", 2);

            assertThat(one.response().values()).containsExactly(1f);
            assertThat(two.response().values()).containsExactly(2f);
            assertThat(statistics(server).executions().executionCount()).isEqualTo(1);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void anExceptionFailsTheRequest() throws Exception {
        model("m", "");
        try (NereidServer server = NereidServer.start(options())) {
            RecordingObserver observer = RecordingObserver.to(server, "m", 1);

            assertThat(observer.error().code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(observer.error().publicMessage())
                    .isEqualTo("parameter 'delay': missing (expected: a value for it)");
            assertThat(observer.terminals()).isEqualTo(1);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void theServerCloseWaitsForStages() throws Exception {
        model("m", parameter("delay", Long.toString(DELAY.toMillis())));
        RecordingObserver observer;
        try (NereidServer server = NereidServer.start(options())) {
            observer = RecordingObserver.to(server, "m", 1);
        }

        assertThat(observer.response().values()).containsExactly(1f);
    }

    private void model(String name, String more) {
        models.model(
                name,
                "backend: \"delay\" max_batch_size: 8 instance_group { count: 1 kind: KIND_CPU }\n"
                        + TestModels.TENSORS
                        + more);
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
