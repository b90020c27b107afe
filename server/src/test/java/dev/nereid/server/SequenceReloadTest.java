package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.Sequence;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which generation of a model gets the requests of a sequence. */
final class SequenceReloadTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    private static final String SEQUENCES = """
            sequence_batching {
              max_sequence_idle_microseconds: 900000000
              oldest { max_candidate_sequences: 4 }
            }
            """;

    @TempDir
    private Path directory;

    private TestModels models;
    private ServerOptions options;

    @BeforeEach
    void setUp() throws Exception {
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.recording(plugins);
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        models.recording("m", SEQUENCES);
        options = ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> o.explicit("m"));
    }

    private static RecordingObserver send(NereidServer server, boolean start, boolean end) {
        return send(server, 1, start, end);
    }

    private static RecordingObserver send(NereidServer server, long id, boolean start, boolean end) {
        return RecordingObserver.to(server, "m", new Sequence(new Sequence.Id.Numeric(id), start, end), 1);
    }

    private void reload(NereidServer server, int number) throws Exception {
        models.recording("m", SEQUENCES + TestModels.parameter("p", Integer.toString(number)));
        TestControl.load(server, "m");
    }

    @Test
    void aSequenceThatStartsAgainNeverGoesOnOnAnEarlierGeneration() throws Exception {
        try (NereidServer server = NereidServer.start(options)) {
            send(server, true, false).response();
            reload(server, 1);
            send(server, false, false).response();
            send(server, true, false).response();
            awaitOneSequence(server); // that of the first generation ends when its request has left the instance
            reload(server, 2);
            send(server, false, true).response();

            assertThat(send(server, false, false).error().publicMessage())
                    .isEqualTo("inference request for sequence 1 to model 'm' must specify the START flag on the first"
                            + " request of the sequence");
        }
    }

    /** A generation without sequences that still executes a request closes soon. No sequence has to end for it. */
    @Test
    void aSequenceGoesOnWhileAnEarlierGenerationCloses() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", SEQUENCES + TestModels.parameter("gate", gate.toString()));
        try (NereidServer server = NereidServer.start(options)) {
            RecordingObserver last = send(server, 2, true, true);
            reload(server, 1);
            send(server, true, false).response();
            reload(server, 2);
            models.recording("m", SEQUENCES + TestModels.parameter("p", "3"));
            CompletableFuture<Void> load = server.control()
                    .load(new ModelControl.Load("m", Optional.empty(), Map.of()))
                    .toCompletableFuture();
            Files.delete(gate);
            load.join();

            last.response();
            send(server, false, true).response();
        }
    }

    private static final String TWO_VERSIONS = "version_policy: { all {} }\n" + SEQUENCES;

    private static RecordingObserver sendTo(NereidServer server, long version, boolean start, boolean end) {
        return RecordingObserver.to(
                server, new ModelRef("m", version), new Sequence(new Sequence.Id.Numeric(1), start, end), 1);
    }

    private void reloadBoth(NereidServer server) throws Exception {
        models.recording("m", TWO_VERSIONS + TestModels.parameter("p", "1"), 1, 2);
        TestControl.load(server, "m");
    }

    @Test
    void aSequenceOfAnotherVersionDoesNotKeepOneFromItsGeneration() throws Exception {
        models.recording("m", TWO_VERSIONS, 1, 2);
        try (NereidServer server = NereidServer.start(options)) {
            sendTo(server, 1, true, false).response();
            reloadBoth(server);
            sendTo(server, 2, true, false).response(); // another sequence of the same id
            sendTo(server, 1, false, true).response();
            sendTo(server, 2, false, true).response();
        }
    }

    @Test
    void aStartWithoutAVersionLeavesTheSequencesOfOtherVersions() throws Exception {
        models.recording("m", TWO_VERSIONS, 1, 2);
        try (NereidServer server = NereidServer.start(options)) {
            sendTo(server, 1, true, false).response();
            sendTo(server, 2, true, false).response();
            reloadBoth(server);
            send(server, true, false).response(); // on the second version
            assertThat(server.models().sequences().stream()
                            .mapToLong(SequenceStatistics::live)
                            .sum())
                    .isEqualTo(2);
            sendTo(server, 1, false, true).response();
            send(server, false, true).response();
        }
    }

    @Test
    void aStartThatIsRefusedLeavesTheSequence() throws Exception {
        try (NereidServer server = NereidServer.start(options)) {
            send(server, true, false).response();
            reload(server, 1);
            Sequence start = new Sequence(new Sequence.Id.Numeric(1), true, false);
            RecordingObserver.to(server, ModelRef.latest("m"), start, new long[] {1, 1, 1}, 1)
                    .error(); // a dimension too many
            RecordingObserver.to(server, ModelRef.latest("m"), start, new long[] {2, 1}, 1, 1)
                    .error(); // two items
            send(server, false, true).response();
        }
    }

    private static void awaitOneSequence(NereidServer server) {
        long giveUp = System.nanoTime() + TIMEOUT.toNanos();
        while (server.models().sequences().getFirst().live() != 1) {
            assertThat(System.nanoTime())
                    .as("the sequence of the first generation has ended")
                    .isLessThan(giveUp);
            Thread.onSpinWait();
        }
    }
}
