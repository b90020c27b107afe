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
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Backends that wait for slow work in complete and load. */
@Timeout(120)
final class SlowCompletionTest {
    @TempDir
    private Path directory;

    private final Slow backend = new Slow();
    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
    }

    /** A backend that waits for stages, which the test completes, unless the model has "fast" in its name. */
    private static final class Slow implements BackendProvider, Backend {
        private final Map<String, CompletableFuture<String>> stages = new ConcurrentHashMap<>();

        CompletableFuture<String> stage(String name) {
            return stages.computeIfAbsent(name, _ -> new CompletableFuture<>());
        }

        @Override
        public String name() {
            return "slow";
        }

        @Override
        public Backend create(BackendContext context) {
            return this;
        }

        @Override
        public Optional<ModelCompletion> complete(ModelContext context) {
            await(context, "complete ");
            return Optional.of(ModelCompletion.EMPTY);
        }

        @Override
        public Model load(ModelContext context) {
            await(context, "load ");
            return _ -> batch -> batch.put("OUTPUT0", batch.gather("INPUT0"));
        }

        private void await(ModelContext context, String step) {
            String model = context.settings().name();
            if (!model.contains("fast")) {
                assertThat(context.await(stage(step + model))).isEqualTo("done");
            }
        }
    }

    private void write(String model) {
        models.model(model, "backend: \"slow\"\nmax_batch_size: 8\n" + TestModels.TENSORS);
    }

    private ServerOptions options(String... startup) {
        return ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> {
                    o.providers = List.of(backend);
                    o.explicit(startup);
                    o.loadThreads = 1;
                });
    }

    private static CompletableFuture<Void> load(NereidServer server, String model) {
        return server.control()
                .load(new ModelControl.Load(model, Optional.empty(), Map.of()))
                .toCompletableFuture();
    }

    private static boolean isReady(NereidServer server, String model) {
        try {
            return server.models().isReady(ModelRef.latest(model));
        } catch (InferenceException e) { // it is not loaded
            return false;
        }
    }

    @Test
    void otherModelsAreLoadedMeanwhile() throws Exception {
        for (int i = 0; i < 4; i++) {
            write("a_slow" + i);
            write("b_fast" + i);
        }

        try (NereidServer server = NereidServer.startLoading(options("*"))) {
            for (int i = 0; i < 4; i++) {
                String fast = "b_fast" + i;
                DemandFixture.await(() -> isReady(server, fast));
                backend.stage("complete a_slow" + i).complete("done");
            }
            backend.stage("load a_slow2").complete("done");
            DemandFixture.await(() -> isReady(server, "a_slow2"));
            assertThat(isReady(server, "a_slow1")).isFalse();
            for (int i = 0; i < 4; i++) {
                backend.stage("load a_slow" + i).complete("done");
            }
            server.awaitModels();
            assertThat(server.failures()).isEmpty();
        }
    }

    @Test
    void aFailureFailsTheLoad() throws Exception {
        write("slow");
        try (NereidServer server = NereidServer.start(options())) {
            CompletableFuture<Void> slow = load(server, "slow");
            backend.stage("complete slow")
                    .completeExceptionally(new BackendException(ErrorCode.NOT_FOUND, "no module é"));

            assertThatThrownBy(() -> slow.get(30, TimeUnit.SECONDS))
                    .hasMessageContaining("version 1 is at UNAVAILABLE state: Not found: no module é");
        }
    }

    @Test
    void aStopEndsTheWait() throws Exception {
        write("slow");
        CompletableFuture<Void> slow;
        try (NereidServer server = NereidServer.start(options())) {
            slow = load(server, "slow");
            DemandFixture.await(() -> backend.stages.containsKey("complete slow"));
        }
        assertThat(backend.stage("complete slow")).isCancelled();
        assertThat(slow).isCompletedExceptionally();
    }
}
