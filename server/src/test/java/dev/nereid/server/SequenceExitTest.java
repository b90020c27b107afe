package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests sequences when the server exits. */
@Tag("slow")
final class SequenceExitTest {
    private static final String ONE_SLOT = """
            sequence_batching {
              max_sequence_idle_microseconds: 900000000
              oldest { max_candidate_sequences: 1 }
            }
            """;

    @TempDir
    private Path directory;

    private static Sequence position(long id, boolean start) {
        return new Sequence(new Sequence.Id.Numeric(id), start, false);
    }

    @Test
    void anIdleSequenceLeavesItsSlotToThoseThatWait() throws Exception {
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.recording(plugins);
        TestModels models = new TestModels(Files.createDirectories(directory.resolve("models")));
        models.recording("m", ONE_SLOT);
        ServerOptions options = ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString());
        try (NereidServer server = NereidServer.start(options)) {
            RecordingObserver.to(server, "m", position(1, true), 1).response();
            RecordingObserver waiting = RecordingObserver.to(server, "m", position(2, true), 2);

            server.beginExit();
            assertThat(RecordingObserver.to(server, "m", position(1, false), 5)
                            .response()
                            .values())
                    .as("front ends may still send requests")
                    .containsExactly(5f);
            server.endSequences();

            assertThat(waiting.response().values()).containsExactly(2f);
            assertStopped(RecordingObserver.to(server, "m", position(1, false), 3));
            assertStopped(RecordingObserver.to(server, "m", position(3, true), 4));
        }
    }

    private static void assertStopped(RecordingObserver observer) {
        assertThat(observer.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(observer.error().publicMessage())
                .isEqualTo("Server is stopping, scheduler for model has stopped accepting new inference requests");
    }
}
