package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.options.ServerOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A server with many models that get no requests. */
@Timeout(120)
final class ManyModelsTest {
    private static final int MODELS = 200;

    /** Far more than it takes, and far less than if models were closed one after another by their timeouts. */
    private static final Duration MAX_STOP = Duration.ofSeconds(30);

    @TempDir
    private Path directory;

    @Test
    void hasNoInstanceThreadsBeforeTheFirstRequest() throws Exception {
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.twice(plugins);
        TestModels models = new TestModels(Files.createDirectories(directory.resolve("models")));
        for (int i = 0; i < MODELS; i++) {
            models.model("many" + i, """
                    backend: "twice"
                    max_batch_size: 4
                    input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
                    output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
                    instance_group { count: 2 kind: KIND_CPU }
                    """);
        }
        long stopNanos;
        try (NereidServer server =
                NereidServer.start(ServerOptions.of(models.root()).withPlugins(plugins))) {
            assertThat(server.models().index()).hasSize(MODELS).allMatch(ManyModelsTest::isReady);
            assertThat(server.isReady()).isTrue();
            assertThat(instanceThreads()).isEmpty();

            infer(server, "many7");
            assertThat(instanceThreads()).containsExactly("instance/many7/1/many7_0_0");
            infer(server, "many8");
            assertThat(instanceThreads()).containsExactly("instance/many7/1/many7_0_0", "instance/many8/1/many8_0_0");

            stopNanos = System.nanoTime();
        }
        assertThat(System.nanoTime() - stopNanos).isLessThan(MAX_STOP.toNanos());
        assertThat(instanceThreads()).isEmpty();
    }

    private static void infer(NereidServer server, String model) throws Exception {
        RecordingObserver.to(server, ModelRef.latest(model), "INPUT", new long[] {1, 1}, 3)
                .await();
    }

    private static boolean isReady(ModelStatus status) {
        return status.state() == ModelStatus.State.READY;
    }

    private static List<String> instanceThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("instance/many"))
                .sorted()
                .toList();
    }
}
