package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ModelControlOptions;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.server.plugin.PluginJar;
import dev.nereid.server.plugin.UnloadWatch;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Jars that are put into the plugin directory, and replaced there, while a server runs. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class HotPluginTest {
    private static final String TIMES = """
            package times;

            import dev.nereid.spi.*;
            import java.lang.foreign.ValueLayout;

            public final class Times implements TensorFunction {
                public Times() { REGISTRATION }

                public String name() { return "times"; }

                public void apply(InferenceRequest request, ModelContext model) throws BackendException {
                    Tensor in = request.requireInput("INPUT0");
                    Tensor out = request.response().allocate("OUTPUT0", DataType.FP32, in.shape());
                    for (long at = 0; at < in.byteSize(); at += Float.BYTES) {
                        float value = in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, at);
                        out.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, FACTOR * value);
                    }
                }
            }
            """;

    @TempDir
    private Path directory;

    private Path jar;

    @BeforeEach
    void setUp() throws IOException {
        jar = Files.createDirectories(directory.resolve("plugins")).resolve("times.jar");
        new TestModels(Files.createDirectories(directory.resolve("models")))
                .model("m", "backend: \"times\"\nmax_batch_size: 8\n" + TestModels.TENSORS);
    }

    @Test
    void servesTheFirstModelOfANewJar() throws Exception {
        try (NereidServer server = NereidServer.start(explicit())) {
            assertThatThrownBy(() -> load(server)).hasMessageContaining("unable to find backend library");

            drop(2);
            load(server);

            assertThat(infer(server)).isEqualTo(14);
        }
    }

    @Test
    void replacesAPluginByANewerJarWithoutAFailedRequest() throws Exception {
        drop(2);
        try (NereidServer server = NereidServer.start(explicit());
                UnloadWatch watch = new UnloadWatch()) {
            load(server);
            AtomicBoolean end = new AtomicBoolean();
            FutureTask<Integer> traffic = new FutureTask<>(() -> {
                int requests = 0;
                for (; !end.get(); requests++) {
                    assertThat(infer(server)).isIn(14f, 21f);
                }
                return requests;
            });
            Thread.ofPlatform().daemon().start(traffic);

            drop(3);
            load(server);

            assertThat(infer(server)).isEqualTo(21);
            end.set(true);
            assertThat(traffic.get()).isPositive();
            while (watch.loaded() > 1) {
                Thread.onSpinWait(); // until the generation of the old plugin is closed
            }
            load(server); // nothing has changed
            assertThat(watch.loaded()).isEqualTo(1);
        }
    }

    @Test
    void changesNothingForABrokenJar() throws Exception {
        drop(2);
        try (NereidServer server = NereidServer.start(explicit())) {
            load(server);
            Files.writeString(jar, "half a jar");
            load(server);

            assertThat(infer(server)).isEqualTo(14);
            assertThat(server.backends()).anyMatch(status -> status.reason().contains("times.jar: not a readable jar"));

            drop(3);
            load(server);
            assertThat(infer(server)).isEqualTo(21);
        }
    }

    @Test
    void followsThePluginDirectoryWhenItPolls() throws Exception {
        try (NereidServer server = NereidServer.start(options(control ->
                        control.withMode(ModelControlMode.POLL).withPoll(Duration.ofMillis(20), Duration.ofMillis(20)))
                .withLifecycle(lifecycle -> lifecycle.withExitOnError(false)))) {
            drop(2);
            await(server, 14);

            drop(3);

            await(server, 21);
        }
    }

    private static void await(NereidServer server, float expected) {
        while (server.models().index().stream().noneMatch(status -> status.state() == ModelStatus.State.READY)
                || infer(server) != expected) {
            Thread.onSpinWait();
        }
    }

    private void drop(int factor) throws IOException {
        Path written = PluginJar.of(TIMES.replace("FACTOR", String.valueOf(factor))
                        .replace("REGISTRATION", UnloadWatch.REGISTRATION))
                .provider("times.Times")
                .write(directory.resolve("build/times.jar"));
        Files.move(written, jar, StandardCopyOption.REPLACE_EXISTING);
    }

    private static float infer(NereidServer server) {
        return RecordingObserver.to(server, "m", 7).response().values().getFirst();
    }

    private static void load(NereidServer server) throws Exception {
        server.control()
                .load(new ModelControl.Load("m", Optional.empty(), Map.of()))
                .toCompletableFuture()
                .get();
    }

    private ServerOptions explicit() {
        return options(control -> control.withExplicit());
    }

    private ServerOptions options(UnaryOperator<ModelControlOptions> control) {
        return ServerOptions.of(directory.resolve("models"))
                .withPlugins(directory.resolve("plugins"))
                .withDirectories(directories -> directories.withPluginCache(directory.resolve("work")))
                .withLifecycle(lifecycle -> lifecycle.withControl(control));
    }
}
