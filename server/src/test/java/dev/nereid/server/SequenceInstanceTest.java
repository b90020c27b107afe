package dev.nereid.server;

import static dev.nereid.server.DemandFixture.await;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the sequences of an instance when one of its executions never returns. */
@Timeout(60)
final class SequenceInstanceTest {
    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(strings = {"direct { }", "oldest { max_candidate_sequences: 4 }"})
    void theSequencesOfALostInstanceEndAndTheOthersGoOn(String strategy) throws Exception {
        Path gate = directory.resolve("gate");
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.recording(plugins);
        TestModels models = new TestModels(Files.createDirectories(directory.resolve("models")));
        models.recording(
                "m",
                "instance_group { count: 2 kind: KIND_CPU }\n"
                        + "sequence_batching { max_sequence_idle_microseconds: 900000000 " + strategy + " }\n"
                        + TestModels.parameter("gate", gate.toString()));
        ServerOptions options = ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString());
        try (NereidServer server = NereidServer.start(options)) {
            send(server, 1, true, false).response(); // on the first instance
            send(server, 2, true, false).response(); // on the second one
            await(() -> executing(server).isEmpty()); // an execution ends after its response was delivered
            Files.createFile(gate);
            RecordingObserver lost = send(server, 1, false, false);
            RecordingObserver behind = send(server, 1, false, false);
            await(() -> executing(server).isPresent());

            server.abandonExecutionOn(executing(server).orElseThrow());

            assertRefused(lost.error(), "could not wait for the end of the execution");
            assertRefused(behind.error(), "has ended: its instance failed beyond repair; start the sequence again");
            Files.delete(gate);
            assertThat(send(server, 1, false, false).error().publicMessage()).contains("must specify the START flag");
            assertThat(send(server, 2, false, false).response().values()).containsExactly(1f);
            assertThat(send(server, 1, true, false).response().values()).containsExactly(1f);
            assertThat(send(server, 1, false, true).response().values()).containsExactly(1f);
            assertThat(send(server, 2, false, true).response().values()).containsExactly(1f);
            await(() -> {
                SequenceStatistics sequences = server.models().sequences().getFirst();
                return sequences.live() == 0 && sequences.slotsUsed() == 0;
            });
        }
    }

    @Test
    void theSequencesOfAnInstanceThatIsRemovedGoOn() throws Exception {
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.recording(plugins);
        TestModels models = new TestModels(Files.createDirectories(directory.resolve("models")));
        String rest = "sequence_batching { max_sequence_idle_microseconds: 900000000 direct { } }\n";
        models.recording("m", "instance_group { count: 2 kind: KIND_CPU }\n" + rest);
        ServerOptions options = ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString());
        try (NereidServer server = NereidServer.start(options)) {
            send(server, 1, true, false).response();
            send(server, 2, true, false).response();
            models.recording("m", "instance_group { count: 1 kind: KIND_CPU }\n" + rest);
            server.updateInstances("m");

            assertThat(send(server, 1, false, true).response().values()).containsExactly(1f);
            assertThat(send(server, 2, false, true).response().values()).containsExactly(1f);
            assertThat(send(server, 3, true, true).response().values()).containsExactly(1f);
            await(() -> server.models().sequences().getFirst().live() == 0);
        }
    }

    private static void assertRefused(InferenceException error, String reason) {
        assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(error.publicMessage()).contains(reason);
    }

    private static RecordingObserver send(NereidServer server, long id, boolean start, boolean end) {
        return RecordingObserver.to(server, "m", new Sequence(new Sequence.Id.Numeric(id), start, end), 1);
    }

    private static Optional<Thread> executing(NereidServer server) {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> server.instanceOn(thread).isPresent())
                .findFirst();
    }
}
