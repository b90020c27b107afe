package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelControl;
import dev.nereid.plugin.PluginJar;
import dev.nereid.plugin.UnloadWatch;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Plugins come and go with their models, while a server runs. */
@Timeout(120)
final class PluginReloadTest {
    private static final String ECHO = """
            package echo;

            import dev.nereid.spi.*;

            public final class Echo implements BackendProvider {
                public Echo() { REGISTRATION }

                public String name() { return "echo"; }

                public Backend create(BackendContext context) {
                    return new Backend() {
                        public Model load(ModelContext model) {
                            return new Model() {
                                public ModelInstance newInstance(InstanceContext place) {
                                    return batch -> {
                                        for (InferenceRequest request : batch.requests()) {
                                            request.response().put("OUTPUT0", request.requireInput("INPUT0"), () -> { });
                                        }
                                    };
                                }
                            };
                        }
                    };
                }
            }
            """;

    private static final String CONFIG = "backend: \"echo\"\nmax_batch_size: 8\n" + TestModels.TENSORS;

    @TempDir
    private Path directory;

    @BeforeEach
    void setUp() throws IOException {
        PluginJar.of(ECHO.replace("REGISTRATION", UnloadWatch.REGISTRATION))
                .provider("echo.Echo")
                .write(directory.resolve("plugins/echo.jar"));
        TestModels models = new TestModels(Files.createDirectories(directory.resolve("models")));
        models.model("m", CONFIG);
        models.model("n", CONFIG);
    }

    @Test
    void unloadsThePluginWithItsLastModelAndLoadsItAgain() throws Exception {
        try (NereidServer server = NereidServer.start(options());
                UnloadWatch watch = new UnloadWatch()) {
            load(server, "m");
            load(server, "n");
            infer(server, "m");
            infer(server, "n");
            assertThat(watch.loaded()).isEqualTo(1);

            unload(server, "m");
            infer(server, "n");
            assertThat(watch.loaded()).isEqualTo(1);
            unload(server, "n");
            awaitClosed(server);
            assertThat(watch.awaitUnloaded()).isTrue();

            load(server, "m");
            infer(server, "m");
            assertThat(watch.loaded()).isEqualTo(1);
        }
    }

    private static void awaitClosed(NereidServer server) {
        while (server.models().index().stream()
                .anyMatch(status -> !status.reason().equals("unloaded"))) {
            Thread.onSpinWait();
        }
    }

    private static void infer(NereidServer server, String model) {
        assertThat(RecordingObserver.to(server, model, 7).response().values()).containsExactly(7f);
    }

    private static void load(NereidServer server, String model) throws Exception {
        server.control()
                .load(new ModelControl.Load(model, Optional.empty(), Map.of()))
                .toCompletableFuture()
                .get();
    }

    private static void unload(NereidServer server, String model) throws Exception {
        server.control().unload(model, false).toCompletableFuture().get();
    }

    private ServerOptions options() {
        return ServerOptions.of(directory.resolve("models"))
                .withPlugins(directory.resolve("plugins"))
                .with(o -> {
                    o.pluginCache = directory.resolve("work");
                    o.explicit();
                });
    }
}
