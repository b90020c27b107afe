package dev.nereid.testkit.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Shape;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Instances that take no work for a while, behind a whole server. */
@Timeout(60)
final class UnavailableInstanceTest {
    private static final String CONFIG = """
            max_batch_size: 8
            input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
            output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
            instance_group { kind: KIND_CPU count: 2 }
            """;

    private static final String TWICE = """
            platform: "ensemble"
            max_batch_size: 8
            input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
            output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
            ensemble_scheduling {
              step { model_name: "first" model_version: -1
                input_map { key: "INPUT" value: "IN" } output_map { key: "OUTPUT" value: "between" } }
              step { model_name: "second" model_version: -1
                input_map { key: "INPUT" value: "between" } output_map { key: "OUTPUT" value: "OUT" } }
            }
            """;

    private final List<InstanceContext> contexts = new CopyOnWriteArrayList<>();
    private final BlockingQueue<String> executed = new LinkedBlockingQueue<>();

    /** Every instance is unavailable at first. */
    private final TestBackend starting = new TestBackend("starting", context -> {
        context.unavailable("process is started");
        contexts.add(context);
        return batch -> {
            executed.add(context.name());
            batch.put("OUTPUT", batch.gather("INPUT"));
        };
    });

    private InstanceContext context(String name) {
        return contexts.stream()
                .filter(one -> one.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private LocalServer start() {
        return LocalServer.with(starting)
                .model("first", CONFIG)
                .model("second", CONFIG)
                .model("twice", TWICE)
                .options(options -> options.explicit("first", "second", "twice"))
                .start();
    }

    private static ReceivedResponses send(LocalServer server, String model, String input, float number) {
        return server.send(server.client().request(model).input(input, Shape.of(1, 1), number));
    }

    private static float[] output(ReceivedResponses received, String output) {
        return received.one().requireOutput(output).floats();
    }

    @Test
    void requestsWaitUntilAnInstanceIsAvailable() throws InterruptedException {
        try (LocalServer server = start()) {
            ReceivedResponses request = send(server, "first", "INPUT", 1);
            context("second_0_0").available();
            assertThat(output(send(server, "second", "INPUT", 2), "OUTPUT")).containsExactly(2);
            assertThat(executed.take()).as("after the other request").isEqualTo("second_0_0");
            assertThat(executed.poll()).isNull();

            context("first_0_1").available();

            assertThat(output(request, "OUTPUT")).containsExactly(1);
            assertThat(executed.take()).isEqualTo("first_0_1");
        }
    }

    @Test
    void stepsOfEnsemblesWaitUntilAnInstanceIsAvailable() throws InterruptedException {
        try (LocalServer server = start()) {
            context("first_0_0").available();
            ReceivedResponses request = send(server, "twice", "IN", 1);
            assertThat(executed.take()).isEqualTo("first_0_0");

            context("second_0_1").available();

            assertThat(output(request, "OUT")).containsExactly(1);
            assertThat(executed.take()).isEqualTo("second_0_1");
        }
    }

    /** Its processes are about to run, which is no reason to take the server out of service. */
    @Test
    void aModelIsReadyWhileAnInstanceIsAvailable() {
        try (LocalServer server = start()) {
            assertThat(readiness(server, "second"))
                    .isEqualTo(Readiness.notReady(ErrorCode.UNAVAILABLE, "process is started"));
            assertThat(server.server().models().isReady(ModelRef.latest("second")))
                    .isFalse();
            assertThat(server.server().isReady()).isTrue();
            context("first_0_0").available();
            assertThat(readiness(server, "first")).isEqualTo(Readiness.READY);
            assertThat(readiness(server, "twice"))
                    .isEqualTo(Readiness.notReady(ErrorCode.UNAVAILABLE, "models of steps that are not ready: second"));
            assertThat(server.server().models().index())
                    .filteredOn(status -> status.name().equals("second"))
                    .extracting(ModelStatus::state, ModelStatus::reason)
                    .containsExactly(tuple(
                            ModelStatus.State.READY,
                            "instances that are not ready: second_0_0 (process is started), second_0_1 (process is"
                                    + " started)"));

            context("second_0_1").available();
            assertThat(readiness(server, "second")).isEqualTo(Readiness.READY);
            assertThat(readiness(server, "twice")).isEqualTo(Readiness.READY);
            assertThat(server.server().models().isReady(ModelRef.latest("twice")))
                    .isTrue();
        }
    }

    private static Readiness readiness(LocalServer server, String model) {
        return server.server()
                .models()
                .checkReady(ModelRef.latest(model))
                .toCompletableFuture()
                .join();
    }

    @Test
    void aCheckOfAnInstanceMayTakeTime() {
        CompletableFuture<Void> check = new CompletableFuture<>();
        TestBackend checking = new TestBackend("checking", _ -> new ModelInstance() {
            @Override
            public void execute(Batch batch) {
                batch.put("OUTPUT", batch.gather("INPUT"));
            }

            @Override
            public CompletionStage<Void> checkReady() {
                return check;
            }
        });
        try (LocalServer server = LocalServer.with(checking).model("m", CONFIG).start()) {
            CompletableFuture<Readiness> readiness =
                    server.server().models().checkReady(ModelRef.latest("m")).toCompletableFuture();
            assertThat(readiness).isNotDone();
            assertThat(server.server().models().isReady(ModelRef.latest("m")))
                    .as("as before")
                    .isTrue();

            check.completeExceptionally(new BackendException(ErrorCode.NOT_FOUND, "no file"));

            assertThat(readiness).isCompletedWithValue(Readiness.notReady(ErrorCode.NOT_FOUND, "no file"));
            assertThat(server.server().models().isReady(ModelRef.latest("m"))).isFalse();
            assertThat(server.server().isReady()).isFalse();
            assertThat(output(send(server, "m", "INPUT", 1), "OUTPUT")).containsExactly(1);
            assertThat(server.server().models().checkReady(ModelRef.latest("nosuch")))
                    .failsWithin(Duration.ZERO)
                    .withThrowableThat()
                    .withMessageContaining("Request for unknown model: 'nosuch' is not found");
        }
    }

    /** A request to an ensemble keeps the models of all steps loaded while it waits. */
    @Test
    void anUnloadWaitsNeitherForRequestsNorForSteps() throws InterruptedException {
        try (LocalServer server = start()) {
            context("first_0_0").available();
            ReceivedResponses step = send(server, "twice", "IN", 1);
            assertThat(executed.take()).isEqualTo("first_0_0");
            ReceivedResponses waiting = send(server, "second", "INPUT", 1);

            CompletionStage<Void> unload = server.server().control().unload("second", false);

            assertThat(unload.toCompletableFuture()).succeedsWithin(Duration.ofSeconds(30));
            for (ReceivedResponses one : List.of(step, waiting)) {
                assertThatExceptionOfType(BackendException.class)
                        .isThrownBy(one::one)
                        .withMessageContaining("model 'second' version 1 is being unloaded while none of its instances")
                        .matches(e -> e.code() == ErrorCode.UNAVAILABLE);
            }
        }
        contexts.forEach(InstanceContext::available); // of callbacks that come too late
    }
}
