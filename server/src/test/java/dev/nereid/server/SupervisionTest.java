package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.statistics.OverdueExecutions;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests the state of a server after failures. The failures are fatal errors, overdue executions and loads, and files
 * that must not be opened.
 */
@Timeout(60)
final class SupervisionTest {
    private static final Duration SHORT = Duration.ofMillis(1);
    private static final Duration LONG = Duration.ofHours(1);
    private static final String GATE = "parameters { key: \"gate\" value { string_value: \"%s\" } }\n";
    private static final String ONE = "instance_group { count: 1 kind: KIND_CPU }\n";

    @TempDir
    private Path directory;

    private final List<OutOfMemoryError> fatal = new CopyOnWriteArrayList<>();
    private TestModels models;
    private Path plugins;

    @BeforeEach
    void makeDirectories() throws IOException {
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.recording(plugins);
    }

    @Test
    void isNotLiveAfterAFatalErrorAndRefusesAndCloses() throws Exception {
        models.recording("m", "parameters { key: \"die_execute\" value { string_value: \"m_0_0\" } }\n" + ONE);
        models.recording("n", ONE);

        try (NereidServer server = start(LONG, LONG)) {
            assertThat(server.isLive()).isTrue();

            RecordingObserver failed = RecordingObserver.to(server, "m", 1);

            assertThat(failed.error().code()).isEqualTo(ErrorCode.INTERNAL);
            assertThat(fatal).hasSize(1);
            assertThat(server.isLive()).isFalse();
            assertThat(server.isReady()).isFalse();
            InferenceException refused = RecordingObserver.to(server, "n", 4).error();
            assertThat(refused.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(refused.publicMessage()).isEqualTo("out of memory: the server has to be started again");
            assertThat(server.control().unload("n", false))
                    .failsWithin(LONG)
                    .withThrowableThat()
                    .havingCause()
                    .withMessage(refused.publicMessage());
        }
    }

    @Tag("slow")
    @Test
    void aModelIsNotReadyWhileItsOnlyInstanceIsOverdueAndTheIndexHasTheReason() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        String record = "parameters { key: \"record\" value { string_value: \"\" } }\n";
        models.recording("m", GATE.formatted(gate) + record + ONE);
        models.recording(
                "patient",
                "parameters { key: \"execution_watchdog_secs\" value { string_value: \"3600\" } }\n"
                        + GATE.formatted(gate) + ONE);

        try (NereidServer server = start(SHORT, LONG)) {
            RecordingObserver observer = RecordingObserver.to(server, "m", 1);
            RecordingObserver other = RecordingObserver.to(server, "patient", 1);
            await(() -> !server.models().isReady(ModelRef.latest("m")));
            await(() -> server.models().overdueExecutions().getFirst().total() == 1);

            await(() -> events().contains("overdue m_0_0"));
            ModelStatus status = server.models().index().getFirst();
            assertThat(status.state()).isEqualTo(ModelStatus.State.READY);
            assertThat(status.reason())
                    .startsWith("instances whose executions take longer than")
                    .endsWith(": m_0_0");
            assertThat(server.isReady()).isFalse();
            assertThat(server.models().overdueExecutions().getFirst())
                    .extracting(OverdueExecutions::now, OverdueExecutions::total)
                    .containsExactly(1L, 1L);
            assertThat(server.models().isReady(ModelRef.latest("patient"))).isTrue();

            Files.delete(gate);
            observer.await();
            other.await();
            await(server::isReady);
            assertThat(server.models().index()).extracting(ModelStatus::reason).containsOnly("");
            assertThat(server.models().overdueExecutions().getFirst().now()).isZero();
        }
    }

    @Tag("slow")
    @Test
    void theIndexReportsAnOverdueLoad() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", GATE.formatted(gate) + ONE + """
                model_warmup { name: "w" batch_size: 1 inputs {
                  key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } }
                """);

        try (NereidServer server = NereidServer.startLoading(options(LONG, SHORT))) {
            await(() -> !server.models().index().getFirst().reason().isEmpty());

            ModelStatus status = server.models().index().getFirst();
            assertThat(status.state()).isEqualTo(ModelStatus.State.LOADING);
            assertThat(status.reason()).startsWith("takes longer than").endsWith("to load");
            Files.delete(gate);
            server.awaitModels();
            assertThat(server.models().index().getFirst().reason()).isEmpty();
        }
    }

    @Test
    void aWrongLimitIsRefused() throws Exception {
        models.recording(
                "m", "parameters { key: \"execution_watchdog_secs\" value { string_value: \"soon\" } }\n" + ONE);

        try (NereidServer server = NereidServer.start(options(LONG, LONG).with(o -> o.exitOnError = false))) {
            assertThat(server.models().index().getFirst().reason())
                    .isEqualTo(
                            "Invalid argument: model 'm': parameter 'execution_watchdog_secs': 'soon' (expected: a whole number of"
                                    + " seconds, 0 or more)");
        }
    }

    @Test
    void pipesAreNotOpenedAndTheOtherModelsServe() throws Exception {
        models.recording("good", ONE);
        models.recording("labels", ONE);
        Path config = models.root().resolve("labels/config.pbtxt");
        Files.writeString(config, Files.readString(config).replace("output {", "output { label_filename: \"pipe\""));
        pipe(models.root().resolve("labels/pipe"));
        models.recording("config", ONE);
        Files.delete(models.root().resolve("config/config.pbtxt"));
        pipe(models.root().resolve("config/config.pbtxt"));

        try (NereidServer server = NereidServer.start(options(LONG, LONG).with(o -> o.exitOnError = false))) {
            assertThat(server.models().index())
                    .extracting(ModelStatus::name, ModelStatus::reason)
                    .containsExactly(
                            tuple(
                                    "config",
                                    "Invalid argument: failed to read text proto from config/config.pbtxt: not a regular file"),
                            tuple("good", ""),
                            tuple("labels", "Internal: failed to open text file for read pipe: not a regular file"));
            assertThat(RecordingObserver.to(server, "good", 4).response().values())
                    .containsExactly(4f);
        }
    }

    private static void pipe(Path path) throws IOException, InterruptedException {
        new ProcessBuilder("mkfifo", path.toString()).start().waitFor();
    }

    private static void await(BooleanSupplier condition) {
        while (!condition.getAsBoolean()) {
            Thread.onSpinWait();
        }
    }

    private List<String> events() {
        try {
            return Files.readAllLines(directory.resolve("events"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private ServerOptions options(Duration executionLimit, Duration loadLimit) {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.executionLimit = executionLimit;
                    o.loadLimit = loadLimit;
                    o.fatalErrors = fatal::add;
                });
    }

    private NereidServer start(Duration executionLimit, Duration loadLimit)
            throws InterruptedException, InferenceException {
        return NereidServer.start(options(executionLimit, loadLimit));
    }
}
