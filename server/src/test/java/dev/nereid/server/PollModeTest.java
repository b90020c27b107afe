package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.function.Predicate;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A server that follows its repositories. See {@code PollStateTest} for the times. */
@Timeout(120)
final class PollModeTest {
    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels models;
    private TestModels others;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        others = new TestModels(Files.createDirectories(directory.resolve("others")));
        TestPlugins.recording(plugins);
    }

    @Test
    void followsTheRepository() throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(options())) {
            assertThat(index(server)).containsExactly("m 1 READY");

            models.recording("n", "");
            await(server, "m 1 READY", "n 1 READY");
            assertThat(infer(server, "n", 4)).containsExactly(4f);

            models.recording("m", "instance_group { count: 3 kind: KIND_CPU }");
            awaitEvent("instance m_0_2 on cpu");
            assertThat(events().stream().filter(event -> event.startsWith("load m/")))
                    .hasSize(1);

            models.recording("m", "", 2);
            await(server, "m 1 UNAVAILABLE unloaded", "m 2 READY", "n 1 READY");

            delete(models.root().resolve("n"));
            await(server, "m 1 UNAVAILABLE unloaded", "m 2 READY", "n 1 UNAVAILABLE unloaded");
            assertThat(server.isReady()).isTrue();
        }
    }

    @Test
    void triesAgainWhatCouldNotBeLoaded() throws Exception {
        models.recording("m", parameter("fail_load", "1"));
        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            await(server, "m 1 UNAVAILABLE Internal: the model's file is broken");
            await(() -> events().stream()
                            .filter(event -> event.equals("load m/1 on [cpu]"))
                            .count()
                    >= 3);

            models.recording("m", "");

            await(server, "m 1 READY");
        }
    }

    @Test
    void servesNoModelThatLiesInTwoRepositories() throws Exception {
        models.recording("m", "");
        others.recording("n", "");
        try (NereidServer server = NereidServer.start(options())) {
            assertThat(index(server)).containsExactly("m 1 READY", "n 1 READY");

            others.recording("m", "");
            await(
                    index -> index.stream().anyMatch("m UNAVAILABLE model appears in two or more repositories"::equals),
                    server);
            assertThat(server.models().loadCounts())
                    .anyMatch(counts -> counts.model().equals("m") && counts.failures() > 0);

            delete(models.root().resolve("m"));
            await(server, "m 1 READY", "n 1 READY");
        }
    }

    @Test
    void goesOnWithoutARepositoryThatIsGone() throws Exception {
        models.recording("m", "");
        others.recording("n", "");
        try (NereidServer server = NereidServer.start(options())) {
            Files.move(others.root(), directory.resolve("away"));
            models.recording("new", "");
            await(server, "m 1 READY", "n 1 READY", "new 1 READY");
            models.recording("newer", "");
            await(server, "m 1 READY", "n 1 READY", "new 1 READY", "newer 1 READY");
            assertThat(infer(server, "n", 4)).containsExactly(4f);

            Files.move(directory.resolve("away"), others.root());
            others.recording("back", "");
            await(server, "back 1 READY", "m 1 READY", "n 1 READY", "new 1 READY", "newer 1 READY");
            assertThat(events().stream().filter(event -> event.startsWith("load n/")))
                    .hasSize(1);
        }
    }

    @Test
    void refusesLoadsOfClients() throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(options())) {
            for (var refused : List.of(
                    server.control().load(new ModelControl.Load("m", Optional.empty(), Map.of())),
                    server.control().unload("m", false))) {
                try {
                    refused.toCompletableFuture().get();
                } catch (ExecutionException e) {
                    assertThat(e.getCause())
                            .isInstanceOf(InferenceException.class)
                            .hasMessage("explicit model load / unload is not allowed if polling is enabled");
                    continue;
                }
                throw new AssertionError("not refused");
            }
        }
    }

    private static List<Float> infer(NereidServer server, String model, float value) {
        return RecordingObserver.to(server, model, value).response().values();
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void await(Condition condition) throws Exception {
        while (!condition.holds()) {
            Thread.onSpinWait();
        }
    }

    private static void await(NereidServer server, String... lines) throws Exception {
        await(List.of(lines)::equals, server);
    }

    private static void await(Predicate<List<String>> expected, NereidServer server) throws Exception {
        await(() -> expected.test(index(server)));
    }

    private void awaitEvent(String event) throws Exception {
        await(() -> events().contains(event));
    }

    private List<String> events() throws IOException {
        return Files.readAllLines(directory.resolve("events"));
    }

    private static List<String> index(NereidServer server) throws Exception {
        return server.control().index().toCompletableFuture().get().stream()
                .map(PollModeTest::describe)
                .toList();
    }

    private static String describe(ModelStatus status) {
        String version = status.version().isPresent() ? " " + status.version().getAsLong() : "";
        return (status.name() + version + " " + status.state() + " " + status.reason()).strip();
    }

    private static void delete(Path model) throws IOException {
        try (var files = Files.walk(model)) {
            for (Path file : files.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root(), others.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.controlMode = ModelControlMode.POLL;
                    o.pollInterval = Duration.ofMillis(20);
                    o.stabilityWindow = Duration.ofMillis(20);
                    o.processors = 2;
                });
    }
}
