package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.plugin.BackendStatus;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A whole server, as an embedding program uses it. */
final class NereidServerTest {
    private static final int CLIENTS = 8;
    private static final int REQUESTS = 2_000;
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
    }

    @Test
    void infersWithAFunctionInAPlugin() throws Exception {
        TestPlugins.twice(plugins);
        models.model("double", """
                backend: "twice"
                max_batch_size: 4
                input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
                output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
                """);

        try (NereidServer server = NereidServer.start(options())) {
            RecordingObserver observer =
                    RecordingObserver.to(server, ModelRef.latest("double"), "INPUT", new long[] {2, 2}, 1.5f, -2, 0, 8);

            assertThat(observer.response().values()).containsExactly(3f, -4f, 0f, 16f);
            assertThat(observer.terminals()).isEqualTo(1);
            assertNoMemoryInUse(server);
        }
    }

    @Test
    void runsPluginsWithTwoVersionsOfOneLibrary() throws Exception {
        TestPlugins.identity(plugins, "identity_old", "1.0");
        TestPlugins.identity(plugins, "identity_new", "2.0");
        for (String backend : List.of("identity_old", "identity_new")) {
            models.model("m_" + backend, "backend: \"" + backend + "\"\nmax_batch_size: 1\n" + TestModels.TENSORS);
        }

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(RecordingObserver.to(server, "m_identity_old", 7).response())
                    .isEqualTo(new RecordingObserver.Values(
                            1, List.of(7f), Map.of("library", new ParameterValue.Text("1.0"))));
            assertThat(RecordingObserver.to(server, "m_identity_new", 8).response())
                    .isEqualTo(new RecordingObserver.Values(
                            1, List.of(8f), Map.of("library", new ParameterValue.Text("2.0"))));
            assertThat(server.backends())
                    .containsExactly(
                            new BackendStatus("identity_new", "identity_new", BackendStatus.State.AVAILABLE, ""),
                            new BackendStatus("identity_old", "identity_old", BackendStatus.State.AVAILABLE, ""));
        }
    }

    @Test
    void reportsItsMetadata() throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.metadata().name()).isEqualTo("nereid");
            assertThat(server.metadata().version()).matches("\\d+\\.\\d+\\.\\d+.*");
            assertThat(String.join(", ", server.metadata().extensions()))
                    .isEqualTo("classification, sequence, model_repository, model_repository(unload_dependents),"
                            + " schedule_policy, model_configuration, system_shared_memory, cuda_shared_memory,"
                            + " binary_tensor_data, parameters, statistics, trace, logging");
        }
        try (NereidServer server = NereidServer.start(options().with(o -> o.serverId = "mine"))) {
            assertThat(server.metadata().name()).isEqualTo("mine");
        }
    }

    @Test
    void refusesEveryInvalidRequestAndReleasesItsMemory() throws Exception {
        TestPlugins.recording(plugins);
        models.recording("m", "");

        try (NereidServer server = NereidServer.start(options())) {
            assertError(
                    RecordingObserver.to(server, "nope", 1),
                    ErrorCode.NOT_FOUND,
                    "Request for unknown model: 'nope' is not found");
            assertError(
                    RecordingObserver.to(server, new ModelRef("m", 9), "INPUT0", new long[] {1, 1}, 1),
                    ErrorCode.NOT_FOUND,
                    "Request for unknown model: 'm' version 9 is not found");
            assertError(
                    RecordingObserver.to(
                            server, ModelRef.latest("m"), "INPUT0", new long[] {9, 1}, 1, 2, 3, 4, 5, 6, 7, 8, 9),
                    ErrorCode.INVALID_ARGUMENT,
                    "[request id: <id_unknown>] inference request batch-size must be <= 8 for 'm'");
            assertNoMemoryInUse(server);
        }
    }

    @Test
    void survivesAnObserverThatThrows() throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            TensorBuffer memory = server.memory().allocate(4);

            server.infer(InferRequest.of(ModelRef.latest("nope"), List.of(), memory::close), new Throwing());

            assertNoMemoryInUse(server);
        }
    }

    @Test
    void completesPendingRequestsBeforeItCloses() throws Exception {
        TestPlugins.recording(plugins);
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("gate", gate.toString()));
        NereidServer server = NereidServer.start(options());
        List<RecordingObserver> observers = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            observers.add(RecordingObserver.to(server, "m", i));
        }

        try (ExecutorService closer = Executors.newSingleThreadExecutor()) {
            Future<?> closed = closer.submit(server::close);
            await(() -> !server.isLive());
            assertThat(closed.isDone()).isFalse();
            assertThat(server.isReady()).isFalse();
            Files.delete(gate);
            closed.get();
        }

        for (int i = 0; i < 5; i++) {
            assertThat(observers.get(i).response().values()).containsExactly((float) i);
        }
        assertThat(Files.readAllLines(events())).endsWith("close m_0_0", "close m/1", "close backend");
        assertError(RecordingObserver.to(server, "m", 1), ErrorCode.UNAVAILABLE, "Server not ready");
        assertNoMemoryInUse(server);
        server.close();
    }

    @Test
    void stopsWaitingAtTheExitTimeout() throws Exception {
        TestPlugins.recording(plugins);
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("gate", gate.toString()) + parameter("record", "yes"));
        NereidServer server = NereidServer.start(options().with(o -> o.exitTimeout = Duration.ofMillis(50)));
        RecordingObserver executing = RecordingObserver.to(server, "m", 1);
        await(() -> happened("execute 1 on m_0_0"));
        RecordingObserver waiting = RecordingObserver.to(server, "m", 1);

        assertThatThrownBy(server::close)
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
                .hasMessage("Exit timeout expired. Exiting immediately.");

        assertError(
                executing,
                ErrorCode.UNAVAILABLE,
                "[request id: <id_unknown>] Server is stopping, and could not wait for the end of the execution");
        assertError(
                waiting,
                ErrorCode.UNAVAILABLE,
                "[request id: <id_unknown>] Server is stopping, scheduler for model has stopped accepting new inference"
                        + " requests");
        assertThat(server.memory().bytesInUse()).as("the backend has its input").isPositive();
        assertThat(Files.readAllLines(events())).noneMatch(event -> event.startsWith("close"));
        Files.delete(gate);
        await(() -> happened("close m/1"));
    }

    @Test
    void acceptsRequestsWhileItReportsThatItExits() throws Exception {
        TestPlugins.recording(plugins);
        models.recording("m", "");
        NereidServer server = NereidServer.start(options());

        server.beginExit();
        server.beginExit();

        assertThat(server.isExiting()).isTrue();
        assertThat(server.isLive()).isFalse();
        assertThat(server.isReady()).isFalse();
        assertThat(RecordingObserver.to(server, "m", 1).response().values()).containsExactly(1f);
        server.closeWithin(Duration.ofSeconds(20));
        assertError(RecordingObserver.to(server, "m", 1), ErrorCode.UNAVAILABLE, "Server not ready");
        assertThat(Files.readAllLines(events())).endsWith("close m_0_0", "close m/1", "close backend");
        server.beginExit();
        assertThat(server.isExiting()).isTrue();
    }

    @Test
    void endsWhileModelsAreLoading() throws Exception {
        TestPlugins.recording(plugins);
        models.recording("a", "").recording("b", "");
        Path gate = Files.createFile(models.root().resolve("a/gate"));
        NereidServer server = NereidServer.startLoading(options().with(o -> o.loadThreads = 1));
        await(() -> happened("load a/1 on [cpu]"));

        try (ExecutorService closer = Executors.newSingleThreadExecutor()) {
            server.beginExit(); // no load begins from now on
            Future<?> closed = closer.submit(server::close);
            Files.delete(gate);
            closed.get();
        }

        assertThat(Files.readAllLines(events()))
                .endsWith("close a_0_0", "close a/1", "close backend")
                .noneMatch(event -> event.contains("b/1"));
        assertThat(server.models().index()).allMatch(status -> status.reason().equals("unloaded"));
    }

    @Test
    void refusesOptionsThatCannotBeMet() {
        Path missing = directory.resolve("missing");

        assertThatThrownBy(() -> NereidServer.start(ServerOptions.of()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("modelRepositories: none (expected: at least one directory)");
        assertThatThrownBy(() -> NereidServer.start(options().with(o -> o.modelRepositories = List.of(missing))))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("modelRepositories: " + missing + " (expected: an existing directory)");
        assertThatThrownBy(() -> NereidServer.start(options().withPlugins(missing)))
                .hasMessage("plugins: " + missing + " (expected: an existing directory)");
        assertThatThrownBy(() -> NereidServer.start(options().with(o -> o.loadThreads = 0)))
                .hasMessage("loadThreads: 0 (expected: >= 1)");
        assertThatThrownBy(() -> NereidServer.start(options().with(o -> o.processors = 0)))
                .hasMessage("processors: 0 (expected: >= 1)");
    }

    /** Eight clients send valid and invalid requests while a second model is loaded. */
    @Test
    void respondsToEveryRequestOnceWhileAnotherModelLoads() throws Exception {
        TestPlugins.recording(plugins);
        models.recording("busy", "instance_group { count: 2 kind: KIND_CPU } dynamic_batching {}");
        models.recording("late", "");
        Path gate = Files.createFile(models.root().resolve("late/gate"));

        List<RecordingObserver> observers = new ArrayList<>();
        try (NereidServer server = NereidServer.startLoading(options());
                ExecutorService clients = Executors.newFixedThreadPool(CLIENTS)) {
            await(() -> isReady(server, "busy"));
            List<Future<List<RecordingObserver>>> work = new ArrayList<>();
            for (int client = 0; client < CLIENTS; client++) {
                Random random = new Random(client);
                work.add(clients.submit(() -> inferAll(server, random)));
            }
            Files.delete(gate);
            for (Future<List<RecordingObserver>> each : work) {
                observers.addAll(each.get());
            }

            server.awaitModels();
            assertThat(server.isReady()).isTrue();
            assertThat(RecordingObserver.to(server, "late", 4).response().values())
                    .containsExactly(4f);
            assertNoMemoryInUse(server);
        }
        assertThat(observers).hasSize(CLIENTS * REQUESTS).allMatch(observer -> observer.terminals() == 1);
    }

    private static List<RecordingObserver> inferAll(NereidServer server, Random random) {
        List<RecordingObserver> observers = new ArrayList<>();
        for (int number = 0; number < REQUESTS; number++) {
            switch (random.nextInt(5)) {
                case 0 -> observers.add(RecordingObserver.to(server, "nope", 1));
                case 1 ->
                    observers.add(RecordingObserver.to(server, ModelRef.latest("busy"), "WRONG", new long[] {1, 1}, 1));
                case 2 ->
                    observers.add(
                            RecordingObserver.to(server, ModelRef.latest("busy"), "INPUT0", new long[] {1, 3}, 1));
                default -> {
                    RecordingObserver observer = RecordingObserver.to(server, "busy", number, number + 1);
                    observers.add(observer);
                    if (random.nextInt(4) == 0) {
                        assertThat(observer.response().values()).containsExactly((float) number, number + 1f);
                    }
                }
            }
        }
        observers.forEach(RecordingObserver::await);
        return observers;
    }

    private static boolean isReady(NereidServer server, String model) {
        try {
            return server.models().isReady(ModelRef.latest(model));
        } catch (InferenceException e) {
            return false; // not loaded yet
        }
    }

    private static void assertError(RecordingObserver observer, ErrorCode code, String message) {
        assertThat(observer.error().publicMessage()).isEqualTo(message);
        assertThat(observer.error().code()).isEqualTo(code);
        assertThat(observer.terminals()).isEqualTo(1);
    }

    /** Waits: an observer is notified just before the last memory is freed. */
    private static void assertNoMemoryInUse(NereidServer server) {
        await(() -> server.memory().bytesInUse() == 0);
    }

    private static void await(BooleanSupplier condition) {
        long giveUp = System.nanoTime() + TIMEOUT.toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("time is over").isLessThan(giveUp);
            Thread.onSpinWait();
        }
    }

    private boolean happened(String event) {
        try {
            return Files.exists(events()) && Files.readAllLines(events()).contains(event);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private Path events() {
        return directory.resolve("events");
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting("recording", "events", events().toString())
                .with(o -> o.processors = 2);
    }

    private static final class Throwing implements ResponseObserver {
        @Override
        public void onResponse(InferResponse response) {
            throw new IllegalStateException("a careless observer");
        }

        @Override
        public void onCompleted() {
            throw new IllegalStateException("a careless observer");
        }

        @Override
        public void onError(InferenceException error) {
            throw new IllegalStateException("a careless observer");
        }
    }
}
