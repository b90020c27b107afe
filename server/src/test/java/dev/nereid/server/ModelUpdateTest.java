package dev.nereid.server;

import static dev.nereid.server.TestModels.TENSORS;
import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import inference.ModelInstanceGroup;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Updates of instances while models serve. */
@Timeout(120)
final class ModelUpdateTest {
    @TempDir
    private Path directory;

    private Path plugins;
    private Path events;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        events = directory.resolve("events");
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
    }

    @Test
    void reusesInstances() throws Exception {
        configure("instance_group { count: 2 kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(options())) {
            Files.delete(events);
            configure("instance_group { name: \"x\" count: 3 kind: KIND_CPU }");

            server.updateInstances("m");

            assertThat(events()).containsExactly("instance x_2 on cpu");
            assertThat(group(server)).extracting(ModelInstanceGroup::getCount).containsExactly(3);
            assertThat(server.models().configJson(ModelRef.latest("m"))).contains("\"count\":3");
            assertThat(server.isReady()).isTrue();
            assertThat(RecordingObserver.to(server, "m", 1).response().values()).containsExactly(1f);
            Files.delete(events);
            configure("instance_group { name: \"x\" count: 1 kind: KIND_CPU }");

            server.updateInstances("m");

            assertThat(events()).containsExactlyInAnyOrder("close x_2", "close m_0_1");
            server.updateInstances("m");
            assertThat(events()).hasSize(2);
            Files.delete(events);
        }
        assertThat(events()).containsExactly("close m_0_0", "close m/1", "close backend");
    }

    /** The threads that the framework has for a number of instances are of another number then. */
    @Test
    void loadsAModelAgainThatSuitsNoOtherNumberOfInstances() throws Exception {
        String sized = parameter("suits", "2");
        configure(sized + "instance_group { count: 2 kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(explicit())) {
            Files.delete(events);
            configure(sized + "instance_group { name: \"x\" count: 2 kind: KIND_CPU }");
            TestControl.load(server, "m");
            assertThat(Files.exists(events) ? events() : List.of())
                    .as("the number is the same")
                    .isEmpty();

            configure(sized + "instance_group { count: 1 kind: KIND_CPU }");
            TestControl.load(server, "m");

            assertThat(events()).contains("load m/1 on [cpu]", "instance m_0_0 on cpu");
            assertThat(group(server)).extracting(ModelInstanceGroup::getCount).containsExactly(1);
            assertThat(RecordingObserver.to(server, "m", 1).response().values()).containsExactly(1f);
        }
    }

    /** A program has asked for the instances alone. */
    @Test
    void updatesInstancesAlsoOfAModelThatSuitsNoOtherNumber() throws Exception {
        String sized = parameter("suits", "2");
        configure(sized + "instance_group { count: 2 kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(options())) {
            Files.delete(events);
            configure(sized + "instance_group { count: 1 kind: KIND_CPU }");

            server.updateInstances("m");

            assertThat(events()).containsExactly("close m_0_1");
        }
    }

    @Test
    void returnsWhenRemovedInstancesAreClosed() throws Exception {
        Path gate = Files.createFile(models.root().resolveSibling("execution_gate"));
        String gated = parameter("gate", gate.toString()) + parameter("record", "yes");
        configure(gated + "instance_group { count: 2 kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(explicit())) {
            Files.delete(events);
            List<RecordingObserver> observers =
                    List.of(RecordingObserver.to(server, "m", 1), RecordingObserver.to(server, "m", 2));
            awaitEvents(2); // both instances execute
            configure(gated + "instance_group { count: 1 kind: KIND_CPU }");
            CompletionStage<List<String>> loaded = server.control()
                    .load(new ModelControl.Load("m", Optional.empty(), Map.of()))
                    .thenApply(_ -> readEvents());
            while (group(server).getFirst().getCount() == 2) {
                Thread.onSpinWait();
            }
            Files.delete(gate);

            assertThat(loaded.toCompletableFuture().get()).contains("close m_0_1");
            for (RecordingObserver observer : observers) {
                assertThat(observer.response().values()).hasSize(1);
            }
        }
    }

    @Test
    void keepsTheStatistics() throws Exception {
        configure("instance_group { kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(options())) {
            RecordingObserver.to(server, "m", 1).await();
            configure("instance_group { kind: KIND_CPU host_policy: \"other\" }");
            server.updateInstances("m");
            RecordingObserver.to(server, "m", 1).await();

            ModelStatistics statistics = server.models().statistics().getFirst();
            assertThat(statistics.executions().inferenceCount()).isEqualTo(2);
            assertThat(statistics.metrics().failures().values()).allMatch(count -> count == 0);
        }
    }

    @Test
    void exchangesPassiveInstances() throws Exception {
        configure("instance_group [ { name: \"a\" kind: KIND_CPU }, { name: \"b\" kind: KIND_CPU passive: true } ]");

        try (NereidServer server = NereidServer.start(options())) {
            Files.delete(events);
            configure(
                    "instance_group [ { name: \"a\" kind: KIND_CPU passive: true }, { name: \"b\" kind: KIND_CPU } ]");
            server.updateInstances("m");
            assertThat(events()).isEmpty(); // each does for the other's group, names aside

            configure("instance_group { name: \"c\" kind: KIND_CPU }");
            server.updateInstances("m");
            assertThat(events()).containsExactly("close b_0");
            assertThat(RecordingObserver.to(server, "m", 1).response().values()).containsExactly(1f);
        }
        assertThat(events()).containsExactly("close b_0", "close a_0", "close m/1", "close backend");
    }

    @Test
    void warmsNewInstancesUp() throws Exception {
        String warmup = parameter("record", "yes") + """
                model_warmup { name: "w" batch_size: 2 inputs {
                  key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } }
                """;
        configure(warmup + "instance_group { count: 1 kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(options())) {
            Files.delete(events);
            configure(warmup + "instance_group { count: 2 kind: KIND_CPU }");

            server.updateInstances("m");

            assertThat(events()).containsExactly("instance m_0_1 on cpu", "execute 2 on m_0_1");
            assertThat(server.memory().bytesInUse()).isZero();
        }
    }

    @Test
    void leavesTheOldInstancesIfANewOneFails() throws Exception {
        String failing = parameter("fail_instance", "x_1");
        configure(failing + "instance_group { count: 1 kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(options())) {
            Files.delete(events);
            configure(failing + "instance_group { name: \"x\" count: 2 kind: KIND_CPU host_policy: \"p\" }");

            assertUpdateFails(server, ErrorCode.UNAVAILABLE, "no memory for an instance");

            assertThat(events()).containsExactly("instance x_0 on cpu", "instance x_1 on cpu", "close x_0");
            assertThat(group(server)).extracting(ModelInstanceGroup::getCount).containsExactly(1);
            assertThat(server.isReady()).isTrue();
            assertThat(RecordingObserver.to(server, "m", 4).response().values()).containsExactly(4f);
        }
    }

    @Test
    void leavesTheOldInstancesIfTheWarmupOfANewOneFails() throws Exception {
        String warmup = parameter("fail_execute", "x_1") + """
                model_warmup { name: "w" batch_size: 1 inputs {
                  key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } }
                """;
        configure(warmup + "instance_group { count: 1 kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(options())) {
            Files.delete(events);
            configure(warmup + "instance_group [ { name: \"x\" count: 2 kind: KIND_CPU host_policy: \"p\" },"
                    + " { name: \"y\" kind: KIND_CPU passive: true } ]");

            assertUpdateFails(server, ErrorCode.INVALID_ARGUMENT, "failed to run warmup sample 'w': broken x_1; ");

            assertThat(events()).contains("close x_0", "close x_1", "close y_0").doesNotContain("close m_0_0");
            assertThat(server.memory().bytesInUse()).isZero();
            assertThat(RecordingObserver.to(server, "m", 4).response().values()).containsExactly(4f);
        }
        assertThat(events()).filteredOn(line -> line.startsWith("close")).doesNotHaveDuplicates();
    }

    @Test
    void reportsThatOtherChangesNeedAReload() throws Exception {
        configure("instance_group { kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(options())) {
            configure("instance_group { kind: KIND_CPU count: 2 }\ndynamic_batching {}");
            assertUpdateFails(
                    server,
                    ErrorCode.INVALID_ARGUMENT,
                    "model 'm' cannot be updated while it serves: its configuration differs in more than instance_group"
                            + " and version_policy (expected: a change of its instances alone; load the model again)");

            configure("instance_group { kind: KIND_CPU count: 2 }\nversion_policy { all {} }");
            server.updateInstances("m");
            assertThat(group(server)).extracting(ModelInstanceGroup::getCount).containsExactly(2);

            Files.createDirectories(models.root().resolve("m/2"));
            assertUpdateFails(
                    server,
                    ErrorCode.INVALID_ARGUMENT,
                    "model 'm' cannot be updated while it serves: its versions [1] are served, and [1, 2] would be"
                            + " (expected: a change of its instances alone; load the model again)");

            Files.writeString(models.root().resolve("m/config.pbtxt"), "max_batch_size: many");
            assertThatThrownBy(() -> server.updateInstances("m")).hasMessageContaining("m/config.pbtxt");
            assertThat(RecordingObserver.to(server, "m", 4).response().values()).containsExactly(4f);
        }
    }

    @Test
    void reloadsADeviceBlockingModel() throws Exception {
        String blocking = parameter("execution", "DEVICE_BLOCKING");
        configure(blocking + "instance_group { kind: KIND_GPU count: 2 }");

        try (NereidServer server = NereidServer.start(options().with(o -> o.gpus = List.of(0, 1)))) {
            assertThat(RecordingObserver.to(server, "m", 4).response().values()).containsExactly(4f);
            server.updateInstances("m");
            configure(blocking + "instance_group { kind: KIND_GPU count: 1 }");

            assertUpdateFails(
                    server,
                    ErrorCode.INVALID_ARGUMENT,
                    "model 'm' cannot be updated while it serves: its instances share threads, since their executions"
                            + " block their device (expected: a change of its instances alone; load the model again)");
        }
    }

    @Test
    void refusesModelsThatItDoesNotServe() throws Exception {
        models.recording("broken", parameter("fail_load", "1"));

        NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false));
        try (server) {
            assertThatThrownBy(() -> server.updateInstances("missing"))
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND))
                    .hasMessage("Request for unknown model: 'missing' is not found");
            assertThatThrownBy(() -> server.updateInstances("broken"))
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                    .hasMessage("model 'broken' cannot be updated: it is not at ready state (expected: every version"
                            + " serves)");
        }
        assertThatThrownBy(() -> server.updateInstances("broken")).hasMessage("Server not ready");
    }

    @Test
    void updatesEveryVersion() throws Exception {
        models.recording("m", "version_policy { all {} } instance_group { kind: KIND_CPU }", 1, 2);

        try (NereidServer server = NereidServer.start(options())) {
            Files.delete(events);
            models.recording("m", "version_policy { all {} } instance_group { kind: KIND_CPU count: 2 }", 1, 2);

            server.updateInstances("m");

            assertThat(events()).containsExactly("instance m_0_1 on cpu", "complete m/2", "instance m_0_1 on cpu");
        }
    }

    @Test
    void refusesOnceTheServerHasBegunToEnd() throws Exception {
        configure("instance_group { kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(options())) {
            server.beginExit();

            assertUpdateFails(server, ErrorCode.UNAVAILABLE, "Server not ready");
        }
    }

    /** Clients that send their next request right after a response, while the groups change. */
    @Test
    void servesWithoutAGapWhileInstancesChange() throws Exception {
        configure("instance_group { count: 2 kind: KIND_CPU }");
        AtomicBoolean ended = new AtomicBoolean();
        AtomicInteger responses = new AtomicInteger();
        List<Throwable> failures = new CopyOnWriteArrayList<>();
        try (NereidServer server = NereidServer.start(options())) {
            List<Thread> clients = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                clients.add(Thread.ofPlatform()
                        .uncaughtExceptionHandler((thread, e) -> failures.add(e))
                        .start(() -> {
                            RecordingObserver before = RecordingObserver.to(server, "m", 7);
                            while (!ended.get()) {
                                RecordingObserver next = RecordingObserver.to(server, "m", 7);
                                assertThat(before.response().values()).containsExactly(7f);
                                responses.incrementAndGet();
                                before = next;
                            }
                            before.response();
                        }));
            }
            String[] groups = {
                "{ count: 1 kind: KIND_CPU host_policy: \"a\" }",
                "[ { count: 1 kind: KIND_CPU host_policy: \"a\" }, { count: 2 kind: KIND_CPU } ]",
                "{ count: 4 kind: KIND_CPU }",
                "{ count: 1 kind: KIND_CPU }"
            };
            for (int round = 0; round < 20; round++) {
                int before = responses.get();
                configure("instance_group " + groups[round % groups.length]);
                server.updateInstances("m");
                while (responses.get() < before + 20 && failures.isEmpty()) {
                    Thread.onSpinWait();
                }
            }
            ended.set(true);
            for (Thread client : clients) {
                client.join();
            }
            assertThat(failures).isEmpty();
            assertThat(server.models()
                            .statistics()
                            .getFirst()
                            .metrics()
                            .failures()
                            .values())
                    .allMatch(count -> count == 0);
        }
        List<String> created = events().stream()
                .filter(line -> line.startsWith("instance"))
                .map(line -> line.split(" ", -1)[1])
                .sorted()
                .toList();
        List<String> closed = events().stream()
                .filter(line -> line.startsWith("close m_"))
                .map(line -> line.split(" ", -1)[1])
                .sorted()
                .toList();
        assertThat(closed).isEqualTo(created).hasSizeGreaterThan(20);
    }

    private void configure(String more) throws IOException {
        Files.createDirectories(models.root().resolve("m/1"));
        Files.writeString(
                models.root().resolve("m/config.pbtxt"),
                "backend: \"recording\"\nmax_batch_size: 8\n" + TENSORS + more);
    }

    private static List<ModelInstanceGroup> group(NereidServer server) {
        return server.models().config(ModelRef.latest("m")).getInstanceGroupList();
    }

    private static void assertUpdateFails(NereidServer server, ErrorCode code, String text) {
        assertThatThrownBy(() -> server.updateInstances("m"))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(code))
                .hasMessage(text);
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting("recording", "events", events.toString())
                .with(o -> o.processors = 2);
    }

    private ServerOptions explicit() {
        return options().with(o -> o.explicit("m"));
    }

    private List<String> readEvents() {
        try {
            return events();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void awaitEvents(int number) throws IOException {
        while (!Files.exists(events) || events().size() < number) {
            Thread.onSpinWait();
        }
    }

    private List<String> events() throws IOException {
        return Files.readAllLines(events).stream()
                .filter(line -> !line.startsWith("complete m/1"))
                .toList();
    }
}
