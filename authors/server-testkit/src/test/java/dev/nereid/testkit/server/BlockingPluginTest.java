package dev.nereid.testkit.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Shape;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Executions that are declared short, and block. */
@Timeout(60)
final class BlockingPluginTest {
    private static final String CONFIG = """
            input { name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] }
            output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1 ] }
            instance_group { kind: KIND_CPU count: 1 }
            """;

    private final CountDownLatch gate = new CountDownLatch(1);
    private final BlockingQueue<String> threads = new LinkedBlockingQueue<>();

    /** Its model "blocking" waits for the gate. */
    private final class Blocking implements BackendProvider {
        @Override
        public String name() {
            return "blocking";
        }

        @Override
        public Backend create(BackendContext context) {
            return BlockingModel::new;
        }
    }

    private final class BlockingModel implements Model {
        private final boolean blocks;

        BlockingModel(ModelContext context) {
            blocks = context.settings().name().equals("blocking");
        }

        @Override
        public Optional<BackendTraits.Execution> execution() {
            return Optional.of(BackendTraits.Execution.SHORT);
        }

        @Override
        public ModelInstance newInstance(InstanceContext context) {
            return this::execute;
        }

        private void execute(Batch batch) {
            threads.add(Thread.currentThread().getName());
            if (blocks) {
                awaitGate();
            }
            batch.put("OUTPUT", batch.gather("INPUT"));
        }
    }

    private void awaitGate() {
        try {
            gate.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static ReceivedResponses send(LocalServer server, String model) {
        return server.send(server.client().request(model).input("INPUT", Shape.of(1), 7f));
    }

    @Test
    void holdNeitherTheirCallerNorOtherModels() throws InterruptedException {
        try (LocalServer server = LocalServer.with(new Blocking())
                .model("blocking", CONFIG)
                .model("other", CONFIG)
                .options(options -> options.executionLimit = Duration.ofMillis(1))
                .start()) {
            ReceivedResponses blocked = send(server, "blocking"); // returns
            assertThat(threads.take()).startsWith("instance/blocking/1/");

            assertThat(send(server, "other").one().requireOutput("OUTPUT").floats())
                    .containsExactly(7);
            while (server.server().models().isReady(ModelRef.latest("blocking"))) {
                Thread.onSpinWait(); // for the watchdog
            }
            assertThat(server.server().models().index().getFirst())
                    .returns("blocking", ModelStatus::name)
                    .satisfies(status -> assertThat(status.reason())
                            .startsWith("instances whose executions take longer than")
                            .endsWith(": blocking_0_0"));
            assertThat(server.server().models().isReady(ModelRef.latest("other")))
                    .isTrue();

            gate.countDown();
            assertThat(blocked.one().requireOutput("OUTPUT").floats()).containsExactly(7);
        }
    }
}
