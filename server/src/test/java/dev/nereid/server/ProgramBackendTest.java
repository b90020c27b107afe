package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.api.ModelControl;
import dev.nereid.plugin.BackendStatus;
import dev.nereid.server.check.RepositoryCheck;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Backends that are classes of the program beside those of plugins. */
@Timeout(60)
final class ProgramBackendTest {
    @TempDir
    private Path directory;

    private final List<String> events = new CopyOnWriteArrayList<>();
    private Path plugins;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        new TestModels(Files.createDirectories(directory.resolve("models")))
                .model("m", "backend: \"copy\"\nmax_batch_size: 8\n" + TestModels.TENSORS);
    }

    /** Returns its input, and records its life. */
    private record Copy(String name, List<String> events) implements BackendProvider {
        @Override
        public Backend create(BackendContext context) {
            events.add("create");
            return new Backend() {
                @Override
                public Model load(ModelContext model) {
                    return place -> this::execute;
                }

                private void execute(Batch batch) {
                    ClassLoader loader = Thread.currentThread().getContextClassLoader();
                    events.add(Objects.equals(loader, Copy.class.getClassLoader()) ? "own loader" : "other loader");
                    batch.put("OUTPUT0", batch.gather("INPUT0"));
                }

                @Override
                public void close() {
                    events.add("close");
                }
            };
        }
    }

    private ServerOptions options() {
        return ServerOptions.of(directory.resolve("models"))
                .withPlugins(plugins)
                .with(o -> {
                    o.providers = List.of(new Copy("copy", events));
                    o.controlMode = ModelControlMode.EXPLICIT;
                });
    }

    private static void load(NereidServer server) throws Exception {
        server.control()
                .load(new ModelControl.Load("m", Optional.empty(), Map.of()))
                .toCompletableFuture()
                .get(30, TimeUnit.SECONDS);
    }

    private static void unload(NereidServer server) throws Exception {
        server.control().unload("m", false).toCompletableFuture().get(30, TimeUnit.SECONDS);
    }

    @Test
    void servesAClassOfTheProgramAndClosesItWithItsLastModel() throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            assertThat(events).isEmpty();
            load(server);
            assertThat(RecordingObserver.to(server, "m", 7).response().values()).containsExactly(7f);
            unload(server);
            load(server);
            assertThat(RecordingObserver.to(server, "m", 8).response().values()).containsExactly(8f);
            assertThat(server.backends())
                    .containsExactly(
                            new BackendStatus("copy", Copy.class.getName(), BackendStatus.State.AVAILABLE, ""));
        }
        assertThat(events)
                .startsWith("create", "own loader")
                .endsWith("own loader", "close")
                .doesNotContain("other loader");
        assertThat(events.stream().filter("create"::equals))
                .hasSameSizeAs(events.stream().filter("close"::equals).toList());
    }

    @Test
    void takesPrecedenceOverPluginsOfTheSameName() throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            TestPlugins.identity(plugins, "copy", "1");
            load(server);

            assertThat(RecordingObserver.to(server, "m", 7).response().values()).containsExactly(7f);
            assertThat(server.backends())
                    .extracting(BackendStatus::backend, BackendStatus::state)
                    .containsExactly(
                            tuple("copy", BackendStatus.State.AVAILABLE), tuple("", BackendStatus.State.BROKEN));
            assertThat(server.backends().getLast().reason())
                    .isEqualTo("backend name: 'copy' is the name of a backend of plugin '" + Copy.class.getName()
                            + "' already (expected: a name of its own)");
        }
        assertThat(events).contains("own loader");
    }

    @Test
    void refusesProvidersOfTheSameName() {
        ServerOptions twice =
                options().with(o -> o.providers = List.of(new Copy("copy", events), new Copy("copy", events)));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> NereidServer.start(twice))
                .withMessage("provider: " + Copy.class.getName() + ": backend name: 'copy' is the name of a backend of"
                        + " plugin '" + Copy.class.getName() + "' already (expected: a name of its own)");
    }

    @Test
    void isPartOfTheCheckOfRepositories() {
        assertThat(RepositoryCheck.run(options()).isValid()).isTrue();
        assertThat(RepositoryCheck.run(options().with(o -> o.providers = List.of()))
                        .isValid())
                .isFalse();
    }
}
