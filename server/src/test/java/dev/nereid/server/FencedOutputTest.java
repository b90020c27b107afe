package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests a plugin whose outputs are computed after its execution, when their fences are awaited. */
@Timeout(60)
final class FencedOutputTest {
    @TempDir
    private Path directory;

    private NereidServer started;

    @BeforeEach
    void start() throws Exception {
        TestPlugins.fenced(Files.createDirectories(directory.resolve("plugins")));
        new TestModels(Files.createDirectories(directory.resolve("models")))
                .model("one", "backend: \"fenced\" max_batch_size: 8\n" + TestModels.TENSORS)
                .model("pairs", "backend: \"fenced\" max_batch_size: 2\n" + TestModels.TENSORS + """
                        instance_group { count: 1 kind: KIND_CPU }
                        dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 3600000000 }
                        """);
        started = NereidServer.start(
                ServerOptions.of(directory.resolve("models")).withPlugins(directory.resolve("plugins")));
    }

    @Test
    void fencesRunWithTheClassLoaderOfThePlugin() {
        try (NereidServer server = started) {
            assertThat(RecordingObserver.to(server, "one", 5).response().values())
                    .containsExactly(1f);

            RecordingObserver first = RecordingObserver.to(server, "pairs", 1, 2);
            RecordingObserver second = RecordingObserver.to(server, "pairs", 3, 4);
            assertThat(first.response().values()).containsExactly(1f, 1f);
            assertThat(second.response().values()).containsExactly(1f, 1f);
            assertThat(server.models()
                            .statistics(ModelRef.latest("pairs"))
                            .getFirst()
                            .executions()
                            .executionCount())
                    .as("batches")
                    .isEqualTo(1);
        }
        assertThat(started.memory().bytesInUse()).isZero();
    }

    @Test
    void brokenFencesFailTheirRequests() {
        try (NereidServer server = started) {
            RecordingObserver alone = RecordingObserver.to(server, "one", -1);
            RecordingObserver first = RecordingObserver.to(server, "pairs", -1, 2);
            RecordingObserver second = RecordingObserver.to(server, "pairs", 3, 4);

            for (RecordingObserver observer : new RecordingObserver[] {alone, first, second}) {
                assertThat(observer.error().code()).isEqualTo(ErrorCode.INTERNAL);
                assertThat(observer.error().publicMessage())
                        .contains(
                                "plugin 'fenced': Fence.await failed: java.lang.IllegalStateException: a broken fence");
                assertThat(observer.terminals()).isEqualTo(1);
            }
        }
        assertThat(started.memory().bytesInUse()).isZero();
    }
}
