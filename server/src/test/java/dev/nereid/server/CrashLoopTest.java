package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

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
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A backend with a process for each instance, as it decides which requests wait for a restart. */
@Timeout(60)
final class CrashLoopTest {
    private static final String DEAD = "Stub process 'm_0_0' is not healthy.";

    @TempDir
    private Path directory;

    private final Processes backend = new Processes();

    /** Requests wait for the first restart, and fail at once when no instance starts again; then they are served. */
    @Test
    void requestsWaitForTheFirstRestartAlone() throws Exception {
        Files.createDirectories(directory.resolve("plugins"));
        TestModels models = new TestModels(Files.createDirectories(directory.resolve("models")));
        models.model(
                "m",
                "backend: \"processes\"\nmax_batch_size: 8\n" + TestModels.TENSORS
                        + "instance_group { count: 2 kind: KIND_CPU }\n"
                        + "dynamic_batching { default_queue_policy { timeout_action: REJECT"
                        + " default_timeout_microseconds: 100000 } }\n");
        try (NereidServer server = NereidServer.start(ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> o.providers = List.of(backend)))) {
            backend.instances.getFirst().dies();
            assertThat(RecordingObserver.to(server, "m", 1).response().values()).containsExactly(1f);
            assertThat(isReady(server)).as("another instance lives").isTrue();

            backend.instances.getLast().dies();
            assertThat(isReady(server)).isFalse();
            assertThat(RecordingObserver.to(server, "m", 2).error().publicMessage())
                    .as("its timeout")
                    .contains("Request timeout expired");
            RecordingObserver waiting = RecordingObserver.to(server, "m", 3);
            backend.instances.forEach(ProcessInstance::failsToStart);
            assertThat(waiting.error().publicMessage()).containsAnyOf(DEAD, "Request timeout expired");
            assertThat(RecordingObserver.to(server, "m", 4).error().publicMessage())
                    .isEqualTo(DEAD);
            assertThat(isReady(server)).isFalse();
            assertThat(server.isReady())
                    .as("one model must not take the server out of service")
                    .isTrue();
            assertThat(server.models().index().getFirst().reason()).contains(DEAD);

            backend.instances.getLast().starts();
            backend.instances.getFirst().dies(); // it waits, since the other one lives
            assertThat(RecordingObserver.to(server, "m", 5).response().values()).containsExactly(5f);
            assertThat(isReady(server)).isTrue();
        }
    }

    private static boolean isReady(NereidServer server) {
        return server.models().isReady(ModelRef.latest("m"));
    }

    private static final class Processes implements BackendProvider, Backend {
        final List<ProcessInstance> instances = new CopyOnWriteArrayList<>();

        @Override
        public String name() {
            return "processes";
        }

        @Override
        public Backend create(BackendContext context) {
            return this;
        }

        @Override
        public Model load(ModelContext context) {
            return instance -> {
                ProcessInstance created = new ProcessInstance(instance);
                instances.add(created);
                return created;
            };
        }
    }

    private static final class ProcessInstance implements ModelInstance {
        private final InstanceContext context;
        private volatile boolean isAlive = true;

        ProcessInstance(InstanceContext context) {
            this.context = context;
        }

        void dies() {
            isAlive = false;
            context.unavailable(DEAD);
        }

        /** Fails requests from now on. */
        void failsToStart() {
            context.failing(DEAD);
        }

        void starts() {
            isAlive = true;
            context.available();
        }

        @Override
        public CompletionStage<Void> checkReady() {
            return isAlive
                    ? ModelInstance.super.checkReady()
                    : CompletableFuture.failedStage(new BackendException(ErrorCode.INTERNAL, DEAD));
        }

        @Override
        public void execute(Batch batch) {
            if (!isAlive) {
                throw new BackendException(ErrorCode.UNAVAILABLE, DEAD);
            }
            batch.put("OUTPUT0", batch.gather("INPUT0"));
        }
    }
}
