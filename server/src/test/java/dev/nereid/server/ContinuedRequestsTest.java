package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.ExecutionStatistics;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests clients in the process that send each response of one model to another one. */
@Timeout(60)
final class ContinuedRequestsTest {
    private static final int CLIENTS = 64;
    private static final int ROUNDS = 20;
    private static final int BATCH = 8;

    @TempDir
    private Path directory;

    private final Queue<Float> results = new ConcurrentLinkedQueue<>();
    private final Queue<InferenceException> errors = new ConcurrentLinkedQueue<>();
    private final CountDownLatch ended = new CountDownLatch(CLIENTS);

    @BeforeEach
    void pack() throws Exception {
        TestPlugins.recording(Files.createDirectories(directory.resolve("plugins")));
        Files.createDirectories(directory.resolve("models"));
    }

    /** The first model waits for full batches, the second one does not: it gets those of the first. */
    @Tag("slow")
    @ParameterizedTest
    @ValueSource(strings = {"LONG", "SHORT"})
    void batchesOfOneModelBecomeBatchesOfTheNext(String execution) throws Exception {
        new TestModels(directory.resolve("models"))
                .recording("first", """
                        dynamic_batching { preferred_batch_size: 8 max_queue_delay_microseconds: 3600000000 }
                        """)
                .recording("second", "dynamic_batching { }\n" + parameter("execution", execution));
        try (NereidServer server = NereidServer.start(ServerOptions.of(directory.resolve("models"))
                .withPlugins(directory.resolve("plugins"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString()))) {
            for (int i = 0; i < CLIENTS; i++) {
                send(server, "first", i, ROUNDS);
            }
            assertThat(ended.await(30, TimeUnit.SECONDS)).as("ended").isTrue();

            assertThat(errors).isEmpty();
            assertThat(results).hasSize(CLIENTS).doesNotHaveDuplicates();
            assertThat(meanBatch(server, "second")).isGreaterThanOrEqualTo(0.5 * meanBatch(server, "first"));
            assertThat(executions(server, "second").batches())
                    .extracting(BatchStatistics::batchSize)
                    .containsExactly((long) BATCH);
        }
    }

    private static double meanBatch(NereidServer server, String model) {
        ExecutionStatistics executions = executions(server, model);
        assertThat(executions.inferenceCount()).isEqualTo((long) CLIENTS * ROUNDS);
        return (double) executions.inferenceCount() / executions.executionCount();
    }

    private static ExecutionStatistics executions(NereidServer server, String model) {
        return server.models().statistics(ModelRef.latest(model)).getFirst().executions();
    }

    /** Sends a number to a model, and the response to the other one, for some rounds. */
    private void send(NereidServer server, String model, float number, int rounds) {
        TensorBuffer memory = server.memory().allocate(Float.BYTES);
        memory.segment().set(ValueLayout.JAVA_FLOAT, 0, number);
        InputTensor in =
                InputTensor.of("INPUT0", DataType.FP32.name(), new long[] {1, 1}, memory.segment(), MemoryPlace.HOST);
        server.infer(InferRequest.of(ModelRef.latest(model), List.of(in), memory::close), new ResponseObserver() {
            @Override
            public void onResponse(InferResponse response) {
                float result;
                try (response) {
                    result = response.outputs().getFirst().tensor().data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
                }
                boolean wasFirst = model.equals("first");
                if (wasFirst || rounds > 1) {
                    send(server, wasFirst ? "second" : "first", result, wasFirst ? rounds : rounds - 1);
                } else {
                    results.add(result);
                    ended.countDown();
                }
            }

            @Override
            public void onCompleted() {
                throw new AssertionError("no response");
            }

            @Override
            public void onError(InferenceException error) {
                errors.add(error);
                ended.countDown();
            }
        });
    }
}
