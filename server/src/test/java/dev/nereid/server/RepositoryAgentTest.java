package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.plugin.PluginJar;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Repository agents of plugins and of the server, around the loads of models in a server. */
@Timeout(120)
final class RepositoryAgentTest {
    private static final String SERVICE = "META-INF/services/dev.nereid.spi.agent.RepositoryAgentProvider";

    /** Writes its hooks into a file beside the plugin, and loads from the directory that a parameter names. */
    private static final String AGENT = """
            package tracing;

            import dev.nereid.spi.*;
            import dev.nereid.spi.agent.*;
            import java.io.*;
            import java.nio.file.*;

            public final class Tracing implements RepositoryAgentProvider {
                public String name() { return "tracing"; }

                public RepositoryAgent create(AgentContext context) {
                    String name = context.modelName();
                    Path file = Path.of(context.parameters().get("events"));
                    return new RepositoryAgent() {
                        public Path load(Path directory) {
                            write("load");
                            String reason = context.parameters().get("reason");
                            if (reason != null) {
                                throw new BackendException(ErrorCode.UNAVAILABLE, reason);
                            }
                            String other = context.parameters().get("directory");
                            return other == null ? directory : Path.of(other);
                        }

                        public void loadComplete() { write("loadComplete"); }

                        public void loadFail() { write("loadFail"); }

                        public void unload() {
                            write("unload");
                            throw new IllegalStateException("a bug");
                        }

                        public void unloadComplete() { write("unloadComplete"); }

                        public void close() { write("close"); }

                        private void write(String hook) {
                            String loader = Thread.currentThread().getContextClassLoader() == getClass().getClassLoader()
                                    ? "" : " under another class loader";
                            try {
                                Files.writeString(file, hook + " " + name + loader + "\\n",
                                        StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                            } catch (IOException e) {
                                throw new UncheckedIOException(e);
                            }
                        }
                    };
                }
            }
            """;

    @TempDir
    private Path directory;

    private Path events;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.recording(plugins);
        PluginJar.of(AGENT).entry(SERVICE, "tracing.Tracing").write(plugins.resolve("tracing.jar"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        events = directory.resolve("events.txt");
    }

    @Test
    void callsTheHooksAroundLoadAndUnload() throws Exception {
        models.recording("m", "version_policy { all { } }\n" + tracing(""), 1, 2);

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(RecordingObserver.to(server, "m", 7).response().values()).containsExactly(7f);
            assertThat(events()).containsExactly("load m", "loadComplete m");
        }

        assertThat(events()).containsExactly("load m", "loadComplete m", "unload m", "unloadComplete m", "close m");
    }

    @Test
    void failsTheLoadWithTheReasonOfTheAgent() throws Exception {
        models.recording("m", tracing("parameters { key: \"reason\" value: \"no license\" }"));

        assertThat(failure()).isEqualTo("Unavailable: no license (repository agent 'tracing')");
        assertThat(events()).containsExactly("load m", "loadFail m", "close m");
    }

    @Test
    void tellsTheAgentThatTheLoadFailed() throws Exception {
        models.recording("m", parameter("throw_load", "yes") + tracing(""));

        assertThat(failure()).contains("a bug");
        assertThat(events()).containsExactly("load m", "loadFail m", "close m");
    }

    @Test
    void tellsTheAgentThatTheConfigurationWasWrong() throws Exception {
        models.recording("m", "dynamic_batching { preferred_batch_size: 99 }\n" + tracing(""));

        assertThat(failure()).contains("m");
        assertThat(events()).containsExactly("load m", "loadFail m", "close m");
    }

    @Test
    void loadsFromTheDirectoryOfTheAgent() throws Exception {
        TestModels others = new TestModels(Files.createDirectories(directory.resolve("others")));
        others.recording("decrypted", "", 3);
        Path other = directory.resolve("others/decrypted");
        models.recording("m", tracing("parameters { key: \"directory\" value: \"" + other + "\" }"), 1);

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(RecordingObserver.to(server, "m", 7).response().version())
                    .isEqualTo(3);
        }
    }

    @Test
    void namesTheAgentsThereAre() throws Exception {
        models.recording("m", "model_repository_agents { agents { name: \"decrypt\" } }\n");

        assertThat(failure())
                .isEqualTo("Invalid argument: unable to find repository agent 'decrypt' (expected: one of"
                        + " [checksum, tracing], or a plugin that brings it)");
    }

    @Test
    void verifiesChecksumsWithoutAnyPlugin() throws Exception {
        String checksum = "model_repository_agents { agents { name: \"checksum\" parameters {"
                + " key: \"MD5:1/weights\" value: \"900150983cd24fb0d6963f7d28e17f72\" } } }\n";
        models.recording("m", checksum);
        Path weights = Files.writeString(directory.resolve("models/m/1/weights"), "abc");
        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.isReady()).isTrue();
        }

        Files.writeString(weights, "abd");
        assertThat(failure())
                .isEqualTo("Invalid argument: Mismatched MD5 hash for file 1/weights,"
                        + " expect: 900150983cd24fb0d6963f7d28e17f72, got: 4911e516e5aa21d327512e0c8b197616"
                        + " (repository agent 'checksum')");
    }

    @Test
    void doesNotUpdateAModelWithAgentsInPlace() throws Exception {
        models.recording("m", tracing(""));
        try (NereidServer server = NereidServer.start(options())) {
            assertThat(catchThrowable(() -> server.updateInstances("m")))
                    .hasMessageContaining("it has repository agents");
            assertThat(events()).containsExactly("load m", "loadComplete m");
        }
    }

    @Test
    void reloadsWithAgentsOfTheNewLoad() throws Exception {
        models.recording("m", "version_policy { all { } }\n" + tracing(""), 1, 2);
        try (NereidServer server = NereidServer.start(options().with(o -> o.explicit("m")))) {
            load(server);
            assertThat(events()).as("nothing has changed").containsExactly("load m", "loadComplete m");

            Files.writeString(directory.resolve("models/m/labels.txt"), "new");
            load(server);
            awaitEvents(7);
            assertThat(events())
                    .containsExactly(
                            "load m",
                            "loadComplete m",
                            "load m",
                            "loadComplete m",
                            "unload m",
                            "unloadComplete m",
                            "close m");
            assertThat(RecordingObserver.to(server, "m", 7).response().values()).containsExactly(7f);

            models.recording("m", parameter("fail_load", "2") + "version_policy { all { } }\n" + tracing(""), 1, 2);
            assertThat(catchThrowable(() -> load(server))).hasMessageContaining("the model's file is broken");
            assertThat(events().subList(7, events().size())).containsExactly("load m", "loadFail m", "close m");
            assertThat(RecordingObserver.to(server, "m", 7).response().values()).containsExactly(7f);

            server.control().unload("m", false).toCompletableFuture().get();
            awaitEvents(13);
            assertThat(events().subList(10, 13)).containsExactly("unload m", "unloadComplete m", "close m");
        }
    }

    private static void load(NereidServer server) throws Exception {
        server.control()
                .load(new ModelControl.Load("m", Optional.empty(), Map.of()))
                .toCompletableFuture()
                .get();
    }

    private void awaitEvents(int count) throws IOException {
        while (events().size() < count) {
            Thread.onSpinWait();
        }
    }

    private String tracing(String more) {
        return "model_repository_agents { agents { name: \"tracing\" parameters { key: \"events\" value: \"" + events
                + "\" } " + more + " } }\n";
    }

    private String failure() throws Exception {
        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            ModelStatus status = server.models().index().getFirst();
            assertThat(status.state()).isEqualTo(ModelStatus.State.UNAVAILABLE);
            return status.reason();
        }
    }

    private List<String> events() throws IOException {
        return Files.readAllLines(events);
    }

    private ServerOptions options() {
        return ServerOptions.of(directory.resolve("models"))
                .withPlugins(directory.resolve("plugins"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("backend.txt").toString());
    }
}
