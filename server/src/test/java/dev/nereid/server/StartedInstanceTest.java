package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Instances that start asynchronously, such as processes. */
@Timeout(120)
final class StartedInstanceTest {
    @TempDir
    private Path directory;

    private final Starting backend = new Starting();
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
    }

    private void write(String model, int instances, String... more) {
        models.model(
                model,
                "backend: \"starting\"\nmax_batch_size: 8\n" + TestModels.TENSORS + "instance_group { count: "
                        + instances + " kind: KIND_CPU }\n" + String.join("\n", more));
    }

    /** A backend with instances that start when the test completes their stages, unless the model has "fast" in its name. */
    private static final class Starting implements BackendProvider, Backend {
        final List<String> events = new CopyOnWriteArrayList<>();
        final Map<String, CompletableFuture<Void>> starts = new ConcurrentHashMap<>();

        /** {@code true} if the stages cannot be cancelled. */
        volatile boolean isStubborn;

        @Override
        public String name() {
            return "starting";
        }

        @Override
        public Backend create(BackendContext context) {
            return this;
        }

        CompletableFuture<Void> start(String instance) {
            return starts.computeIfAbsent(instance, _ -> new CompletableFuture<>());
        }

        @Override
        public Model load(ModelContext context) {
            String model = context.settings().name();
            return new Model() {
                @Override
                public ModelInstance newInstance(InstanceContext instance) {
                    events.add("make " + instance.name());
                    return new StartingInstance(Starting.this, instance.name());
                }

                @Override
                public void close() {
                    events.add("close model " + model);
                }
            };
        }

        @Override
        public void close() {
            events.add("close backend");
        }
    }

    private record StartingInstance(Starting backend, String name) implements ModelInstance {
        @Override
        public CompletionStage<Void> started() {
            if (name.contains("fast")) {
                return ModelInstance.super.started();
            }
            CompletableFuture<Void> start = backend.start(name);
            return backend.isStubborn ? start.minimalCompletionStage() : start;
        }

        @Override
        public void execute(Batch batch) {
            backend.events.add("execute on " + name);
            batch.put("OUTPUT0", batch.gather("INPUT0"));
        }

        @Override
        public void close() {
            backend.events.add("close " + name + (backend.start(name).isCancelled() ? ", cancelled" : ""));
        }
    }

    private ServerOptions options(int threads, String... startup) {
        return ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> {
                    o.providers = List.of(backend);
                    o.explicit(startup);
                    o.loadThreads = threads;
                });
    }

    private static CompletableFuture<Void> load(NereidServer server, String model) {
        return server.control()
                .load(new ModelControl.Load(model, Optional.empty(), Map.of()))
                .toCompletableFuture();
    }

    private static void get(CompletableFuture<?> stage) throws Exception {
        stage.get(30, TimeUnit.SECONDS);
    }

    private void awaitEvent(String event) throws Exception {
        DemandFixture.await(() -> backend.events.contains(event));
    }

    private static boolean isReady(NereidServer server, String model) {
        try {
            return server.models().isReady(ModelRef.latest(model));
        } catch (InferenceException e) { // it is not loaded
            return false;
        }
    }

    /** As many slow models as there are permits, and more: models without one are loaded meanwhile. */
    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    void otherModelsAreLoadedWhileInstancesStart(int threads) throws Exception {
        for (int i = 0; i < 4; i++) {
            write("a_slow" + i, 1);
            write("b_fast" + i, 1);
        }

        try (NereidServer server = NereidServer.startLoading(options(threads, "*"))) {
            for (int i = 0; i < 4; i++) {
                String fast = "b_fast" + i;
                DemandFixture.await(() -> isReady(server, fast));
                assertThat(isReady(server, "a_slow" + i)).isFalse();
            }
            backend.start("a_slow2_0_0").complete(null);
            DemandFixture.await(() -> isReady(server, "a_slow2"));
            assertThat(isReady(server, "a_slow1")).isFalse();
            for (int i = 0; i < 4; i++) {
                backend.start("a_slow" + i + "_0_0").complete(null);
            }
            server.awaitModels();
            assertThat(server.failures()).isEmpty();
            assertThat(RecordingObserver.to(server, "a_slow0", 7).response().values())
                    .containsExactly(7f);
        }
    }

    @Test
    void clientsLoadOtherModelsWhileInstancesStart() throws Exception {
        write("slow", 2);
        write("fast", 1);
        write("faster", 1);

        try (NereidServer server = NereidServer.start(options(1))) {
            CompletableFuture<Void> slow = load(server, "slow");
            awaitEvent("make slow_0_1"); // both at the same time
            get(load(server, "fast"));

            backend.start("slow_0_1").complete(null);
            get(load(server, "faster")); // with the permit that the load of the other one would take now
            assertThat(slow).isNotDone();
            backend.start("slow_0_0").complete(null);
            get(slow);
            assertThat(isReady(server, "slow")).isTrue();
        }
    }

    @Test
    void warmUpsFollowTheStart() throws Exception {
        write("slow", 1, """
                model_warmup [ {
                  name: "w" batch_size: 1 count: 1
                  inputs { key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 4 ] random_data: true } }
                } ]
                """);

        try (NereidServer server = NereidServer.start(options(4))) {
            CompletableFuture<Void> slow = load(server, "slow");
            awaitEvent("make slow_0_0");
            backend.events.add("complete");
            backend.start("slow_0_0").complete(null);
            get(slow);
        }
        assertThat(backend.events)
                .containsExactly(
                        "make slow_0_0",
                        "complete",
                        "execute on slow_0_0",
                        "close slow_0_0",
                        "close model slow",
                        "close backend");
    }

    /** The instance that starts still is cancelled, and closed before its model. */
    @Test
    void aStartThatFailsFailsTheLoad() throws Exception {
        write("slow", 2);

        try (NereidServer server = NereidServer.start(options(4))) {
            CompletableFuture<Void> slow = load(server, "slow");
            awaitEvent("make slow_0_1");
            backend.start("slow_0_1").completeExceptionally(new BackendException(ErrorCode.NOT_FOUND, "no module é"));
            assertThatThrownBy(() -> get(slow))
                    .hasMessageContaining("version 1 is at UNAVAILABLE state: Not found: no module é");
            assertThat(backend.events)
                    .endsWith("close slow_0_1", "close slow_0_0, cancelled", "close model slow", "close backend");

            backend.starts.clear();
            CompletableFuture<Void> again = load(server, "slow");
            backend.start("slow_0_0").completeExceptionally(new IllegalStateException("a bug"));
            assertThatThrownBy(() -> get(again))
                    .hasMessageContaining("ModelInstance.started failed: java.lang.IllegalStateException: a bug");
        }
    }

    @Test
    void aStopEndsTheWait() throws Exception {
        write("slow", 1);

        CompletableFuture<Void> slow;
        try (NereidServer server = NereidServer.start(options(4))) {
            slow = load(server, "slow");
            awaitEvent("make slow_0_0");
        }
        assertThatThrownBy(() -> get(slow)).hasMessageContaining("Server not ready");
        assertThat(backend.events)
                .containsExactly("make slow_0_0", "close slow_0_0, cancelled", "close model slow", "close backend");
    }

    /** The load ends at once; what it has made stays until the stage ends. */
    @Test
    void aStartThatCannotBeCancelledDelaysTheCloses() throws Exception {
        backend.isStubborn = true;
        write("slow", 2);

        try (NereidServer server = NereidServer.start(options(4))) {
            CompletableFuture<Void> slow = load(server, "slow");
            awaitEvent("make slow_0_1");
            backend.start("slow_0_1").completeExceptionally(new BackendException(ErrorCode.UNAVAILABLE, "no device"));
            assertThatThrownBy(() -> get(slow)).hasMessageContaining("no device");
            assertThat(backend.events).containsExactly("make slow_0_0", "make slow_0_1", "close slow_0_1");

            assertThatThrownBy(() -> get(load(server, "slow")))
                    .hasMessageContaining("starts of an earlier load cannot be cancelled, and go on: 1");
            assertThat(backend.events).as("no further instance").hasSize(3);
            backend.start("slow_0_0").complete(null);
            awaitEvent("close backend");
            assertThat(backend.events)
                    .endsWith("close slow_0_1", "close slow_0_0", "close model slow", "close backend");
        }
    }

    @Test
    void aStopDoesNotWaitForAStartThatCannotBeCancelled() throws Exception {
        backend.isStubborn = true;
        write("slow", 1);

        CompletableFuture<Void> slow;
        try (NereidServer server = NereidServer.start(options(4))) {
            slow = load(server, "slow");
            awaitEvent("make slow_0_0");
        }
        assertThatThrownBy(() -> get(slow)).hasMessageContaining("Server not ready");
        assertThat(backend.events).containsExactly("make slow_0_0");
        backend.start("slow_0_0").complete(null);
        awaitEvent("close backend");
    }

    @Test
    void anUnloadFollowsTheStart() throws Exception {
        write("slow", 1);
        write("fast", 1);

        try (NereidServer server = NereidServer.start(options(4))) {
            CompletableFuture<Void> slow = load(server, "slow");
            awaitEvent("make slow_0_0");
            CompletableFuture<Void> unload =
                    server.control().unload("slow", false).toCompletableFuture();
            get(load(server, "fast"));
            get(server.control().unload("fast", false).toCompletableFuture()); // after the unload of the other one
            assertThat(slow).isNotDone();
            assertThat(unload).isNotDone();
            assertThat(backend.events).doesNotContain("close slow_0_0", "close slow_0_0, cancelled");
            backend.start("slow_0_0").complete(null);
            get(slow);
            get(unload);
            assertThat(isReady(server, "slow")).isFalse();
        }
    }

    /** The instances that serve go on while others start, and if those fail. */
    @Test
    void instancesAreAddedWhenTheyHaveStarted() throws Exception {
        write("slow", 1);
        backend.start("slow_0_0").complete(null);

        try (NereidServer server = NereidServer.start(options(1, "slow"))) {
            write("slow", 2);
            CompletableFuture<Void> more = load(server, "slow");
            awaitEvent("make slow_0_1");
            assertThat(RecordingObserver.to(server, "slow", 7).response().values())
                    .containsExactly(7f);
            assertThat(more).isNotDone();
            backend.start("slow_0_1").completeExceptionally(new BackendException(ErrorCode.UNAVAILABLE, "no device"));
            assertThatThrownBy(() -> get(more)).hasMessageContaining("no device");
            assertThat(RecordingObserver.to(server, "slow", 8).response().values())
                    .containsExactly(8f);

            backend.starts.clear();
            CompletableFuture<Void> again = load(server, "slow");
            backend.start("slow_0_1").complete(null);
            get(again);
            assertThat(backend.events).containsOnlyOnce("make slow_0_0").doesNotContain("close model slow");
        }
    }
}
