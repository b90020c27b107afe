package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.plugin.BackendStatus;
import dev.nereid.plugin.PluginJar;
import dev.nereid.plugin.UnloadWatch;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Jars that are put into the plugin directory, and replaced there, while a server runs. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class HotPluginTest {
    private static final String TIMES = """
            package times;

            import dev.nereid.spi.*;
            import dev.nereid.spi.function.*;
            import java.lang.foreign.ValueLayout;

            public final class Times implements TensorFunction {
                public Times() { REGISTRATION }

                public String name() { return "times"; }

                public void apply(InferenceRequest request, ModelContext model) {
                    Tensor in = request.requireInput("INPUT0");
                    Tensor out = request.response().allocate("OUTPUT0", DataType.FP32, in.shape());
                    for (long at = 0; at < in.byteSize(); at += Float.BYTES) {
                        float value = in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, at);
                        out.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, FACTOR * value);
                    }
                }
            }
            """;

    private static final String NATIVE = """
            package times;

            import dev.nereid.spi.*;

            public final class Times implements BackendProvider {
                public String name() { return "times"; }

                public Backend create(BackendContext context) {
                    return new Backend() {
                        public Model load(ModelContext model) { LOAD }
                    };
                }
            }
            """;

    private static final String AGENT = """
            package noting;

            import dev.nereid.spi.agent.*;
            import java.io.*;
            import java.nio.file.*;

            public final class Noting implements RepositoryAgentProvider {
                public String name() { return "noting"; }

                public RepositoryAgent create(AgentContext context) {
                    return new RepositoryAgent() {
                        public Path load(Path directory) {
                            note("load");
                            return directory;
                        }

                        public void unloadComplete() { note("unloadComplete"); }

                        private void note(String hook) {
                            try {
                                Files.writeString(Path.of("EVENTS"), "NAME " + hook + "\\n",
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

    @Tag("slow")
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

    /** A plugin that cannot be used, and a part of the reason. */
    enum Broken {
        TRUNCATED("times.jar: not a readable jar"),
        EMPTY("times.jar: not a readable jar"),
        NEWER_SPI("times.jar: Backend-Spi-Version: 1.9 (expected: 1.0 to 1.0); use a newer server"),
        NEWER_CLASS_FILE("UnsupportedClassVersionError"),
        MISSING_PROVIDER("times.Times not found"),
        THROWING_INITIALIZER("ExceptionInInitializerError"),
        NAME_OF_ANOTHER("backend name: 'other' is the name of a backend of plugin 'another' already"),
        NO_PROVIDER("no provider");

        private final String reason;

        Broken(String reason) {
            this.reason = reason;
        }
    }

    @ParameterizedTest
    @EnumSource
    void changesNothingForAnyKindOfBrokenJar(Broken kind) throws Exception {
        drop(2);
        PluginJar.of(TIMES.replace("FACTOR", "5").replace("REGISTRATION", "").replace("\"times\"", "\"other\""))
                .provider("times.Times")
                .write(directory.resolve("plugins/another.jar"));
        try (NereidServer server = NereidServer.start(explicit());
                UnloadWatch watch = new UnloadWatch()) {
            load(server);
            write(kind);
            load(server);

            assertThat(infer(server)).isEqualTo(14);
            assertThat(server.backends())
                    .filteredOn(status -> status.state() == BackendStatus.State.BROKEN)
                    .singleElement()
                    .satisfies(status -> {
                        assertThat(status.plugin()).isEqualTo("times");
                        assertThat(status.reason()).contains(kind.reason);
                    });
            assertThat(watch.loaded()).isEqualTo(1);

            drop(3);
            load(server);
            assertThat(infer(server)).isEqualTo(21);
            assertThat(server.backends()).noneMatch(status -> status.state() == BackendStatus.State.BROKEN);
        }
    }

    private void write(Broken kind) throws IOException {
        String source = TIMES.replace("FACTOR", "3");
        PluginJar sound = PluginJar.of(source.replace("REGISTRATION", UnloadWatch.REGISTRATION))
                .provider("times.Times");
        Path built = directory.resolve("build/broken.jar");
        switch (kind) {
            case TRUNCATED -> {
                byte[] bytes = Files.readAllBytes(sound.write(built));
                Files.write(built, Arrays.copyOf(bytes, bytes.length / 2));
            }
            case EMPTY -> Files.write(Files.createDirectories(built.getParent()).resolve("broken.jar"), new byte[0]);
            case NEWER_SPI -> sound.spiVersion("1.9").write(built);
            case NEWER_CLASS_FILE -> ofNewerJava(sound.write(built));
            case MISSING_PROVIDER -> sound.without("times.Times").write(built);
            case THROWING_INITIALIZER ->
                PluginJar.of(source.replace("REGISTRATION", "")
                                .replace(
                                        "public Times()",
                                        "static { if (true) throw new IllegalStateException(\"no\"); }"
                                                + " public Times()"))
                        .provider("times.Times")
                        .write(built);
            case NAME_OF_ANOTHER ->
                PluginJar.of(source.replace("REGISTRATION", "").replace("\"times\"", "\"other\""))
                        .provider("times.Times")
                        .write(built);
            case NO_PROVIDER -> PluginJar.of(source.replace("REGISTRATION", "")).write(built);
        }
        Files.move(built, jar, StandardCopyOption.REPLACE_EXISTING);
    }

    /** Raises the version in the class files of a jar beyond that of this JVM. */
    private static void ofNewerJava(Path file) throws IOException {
        try (FileSystem entries = FileSystems.newFileSystem(file)) {
            Path compiled = entries.getPath("times/Times.class");
            byte[] bytes = Files.readAllBytes(compiled);
            bytes[7] = (byte) (Runtime.version().feature() + 44 + 1);
            Files.write(compiled, bytes);
        }
    }

    @Tag("slow")
    @Test
    void anExecutionThatTakesMinutesCompletesWithTheOldCodeWhileOthersGetTheNew() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        drop(2, gate);
        try (NereidServer server = NereidServer.start(explicit());
                UnloadWatch watch = new UnloadWatch()) {
            load(server);
            RecordingObserver held = RecordingObserver.to(server, "m", 7);
            while (!Files.exists(directory.resolve("gate.waiting"))) {
                Thread.onSpinWait();
            }

            drop(3);
            load(server);

            for (int i = 0; i < 10; i++) {
                assertThat(infer(server)).isEqualTo(21);
            }
            assertThat(watch.loaded()).as("old and new code").isEqualTo(2);
            Files.delete(gate);
            assertThat(held.response().values()).containsExactly(14f);
            while (watch.loaded() > 1) {
                Thread.onSpinWait(); // until the generation of the old plugin is closed
            }
            assertThat(infer(server)).isEqualTo(21);
        }
    }

    @Test
    void aPluginIsDeletedAndAnotherVersionAddedLater() throws Exception {
        drop(2);
        try (NereidServer server = NereidServer.start(explicit())) {
            load(server);
            Files.delete(jar);
            load(server);
            assertThat(infer(server)).as("it serves on").isEqualTo(14);

            drop(3);
            load(server);

            assertThat(infer(server)).isEqualTo(21);
        }
    }

    @Test
    void aPluginWithNativeLibrariesNeedsARestartAndTheLoadThatFailsSaysSo() throws Exception {
        dropNative("throw new BackendException(ErrorCode.UNSUPPORTED, \"needs the new one\");");
        try (NereidServer server = NereidServer.start(explicit())) {
            assertThatThrownBy(() -> load(server)).hasMessageContaining("needs the new one;");

            dropNative("return instance -> batch -> {};");

            assertThatThrownBy(() -> load(server))
                    .hasMessageContaining("needs the new one (plugin has changed and needs a restart of the server: it"
                            + " contains native libraries, and the JVM binds each of them to the class loader that"
                            + " loaded it first)");
            assertThat(server.backends())
                    .filteredOn(status -> status.backend().equals("times"))
                    .singleElement()
                    .extracting(BackendStatus::reason)
                    .asString()
                    .startsWith("plugin has changed and needs a restart of the server");
        }
    }

    private void dropNative(String load) throws IOException {
        Path written = PluginJar.of(NATIVE.replace("LOAD", load))
                .provider("times.Times")
                .attribute("Nereid-Native", "true")
                .write(directory.resolve("build/times.jar"));
        Files.move(written, jar, StandardCopyOption.REPLACE_EXISTING);
    }

    @Test
    void aRepositoryAgentIsReplacedAndEndsTheModelsThatItLoaded() throws Exception {
        Path events = directory.resolve("events");
        drop(2);
        dropAgent("old", events);
        new TestModels(directory.resolve("models"))
                .model(
                        "m",
                        "backend: \"times\"\nmax_batch_size: 8\n" + TestModels.TENSORS
                                + "model_repository_agents { agents [ { name: \"noting\" } ] }\n");
        try (NereidServer server = NereidServer.start(explicit())) {
            load(server);
            dropAgent("new", events);

            server.control()
                    .load(new ModelControl.Load("m", Optional.empty(), Map.of()).forced())
                    .toCompletableFuture()
                    .get();

            assertThat(infer(server)).isEqualTo(14);
            while (Files.readAllLines(events).size() < 3) {
                Thread.onSpinWait(); // until the old generation is closed
            }
            assertThat(Files.readAllLines(events)).containsExactly("old load", "new load", "old unloadComplete");
        }
    }

    private void dropAgent(String name, Path events) throws IOException {
        Path written = PluginJar.of(AGENT.replace("NAME", name).replace("EVENTS", events.toString()))
                .entry("META-INF/services/dev.nereid.spi.agent.RepositoryAgentProvider", "noting.Noting")
                .write(directory.resolve("build/noting.jar"));
        Files.move(written, directory.resolve("plugins/noting.jar"), StandardCopyOption.REPLACE_EXISTING);
    }

    @Test
    void followsThePluginDirectoryWhenItPolls() throws Exception {
        try (NereidServer server = NereidServer.start(options(o -> {
            o.controlMode = ModelControlMode.POLL;
            o.pollInterval = Duration.ofMillis(20);
            o.stabilityWindow = Duration.ofMillis(20);
            o.exitOnError = false;
        }))) {
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

    /** Adds a plugin whose executions wait as long as a file exists. */
    private void drop(int factor, Path gate) throws IOException {
        String waiting = "var gate = java.nio.file.Path.of(\"" + gate + "\");"
                + " if (java.nio.file.Files.exists(gate)) {"
                + " try { java.nio.file.Files.createFile(java.nio.file.Path.of(\"" + gate + ".waiting\")); }"
                + " catch (java.io.IOException e) { throw new java.io.UncheckedIOException(e); }"
                + " while (java.nio.file.Files.exists(gate)) { Thread.onSpinWait(); } }";
        Path written = PluginJar.of(TIMES.replace("FACTOR", String.valueOf(factor))
                        .replace("REGISTRATION", UnloadWatch.REGISTRATION)
                        .replace("Tensor in =", waiting + " Tensor in ="))
                .provider("times.Times")
                .write(directory.resolve("build/times.jar"));
        Files.move(written, jar, StandardCopyOption.REPLACE_EXISTING);
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
        return options(o -> o.explicit());
    }

    private ServerOptions options(Consumer<ServerOptions.Builder> change) {
        return ServerOptions.of(directory.resolve("models"))
                .withPlugins(directory.resolve("plugins"))
                .with(o -> {
                    o.pluginCache = directory.resolve("work");
                    change.accept(o);
                });
    }
}
