package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelControl;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.distribution.testing.AccumulatorModel;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelStatisticsRequest;
import inference.ModelStreamInferResponse;
import io.grpc.stub.StreamObserver;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How often the states of an ONNX model are copied, in batches of four sequences. */
@Timeout(120)
class StateCopiesIT {
    private static final int SECONDS = 60;
    private static final String IDLE = "max_sequence_idle_microseconds: 900000000 ";
    private static final int[] ORDER = {1, 2, 3, 4};

    @TempDir
    private Path directory;

    @RegisterExtension
    private final ServerExtension server =
            new ServerExtension(() -> TestServer.of(models()).with(o -> o.explicit("direct", "oldest")));

    private StreamObserver<ModelInferRequest> stream;
    private final BlockingQueue<Object> responses = new LinkedBlockingQueue<>();

    private Repository models() {
        Repository models = new Repository(directory);
        AccumulatorModel accumulator = new AccumulatorModel("FP32", "INT64", false);
        accumulator.addTo(
                models,
                "direct",
                IDLE + "direct { max_queue_delay_microseconds: 60000000 minimum_slot_utilization: 1.0 }",
                4,
                1);
        accumulator.addTo(
                models,
                "oldest",
                IDLE + "oldest { max_candidate_sequences: 4 preferred_batch_size: [ 4 ]"
                        + " max_queue_delay_microseconds: 60000000 }",
                4,
                1);
        return models;
    }

    @BeforeEach
    void begin() {
        stream = GRPCInferenceServiceGrpc.newStub(server.channel()).modelStreamInfer(new StreamObserver<>() {
            @Override
            public void onNext(ModelStreamInferResponse response) {
                responses.add(response);
            }

            @Override
            public void onError(Throwable failure) {
                responses.add(failure);
            }

            @Override
            public void onCompleted() {}
        });
    }

    @AfterEach
    void end() {
        stream.onCompleted();
    }

    @ParameterizedTest
    @ValueSource(strings = {"direct", "oldest"})
    void aBatchOfTheSameSequencesGetsTheirStatesWithoutACopy(String model) throws Exception {
        batch(model, 1, true, false, ORDER);
        long first = use(model).stateCopies();
        assertThat(first).as("initial states joined").isEqualTo(4);
        // stored after the responses
        Eventually.holds("states", SECONDS, () -> use(model).stateBytes() == 4 * Float.BYTES);
        for (int sum = 2; sum <= 6; sum++) {
            batch(model, sum, false, false, ORDER);
        }
        assertThat(use(model).stateCopies()).isEqualTo(first);

        batch(model, 7, false, false, 4, 2, 3, 1);
        boolean moves = model.equals("oldest"); // the places of direct stay
        assertThat(use(model).stateCopies() - first).isBetween(moves ? 2L : 0L, moves ? 4L : 0L);
        long moved = use(model).stateCopies();
        batch(model, 8, false, false, 4, 2, 3, 1);
        assertThat(use(model).stateCopies()).isEqualTo(moved);

        batch(model, 9, false, true, 4, 2, 3, 1);
        Eventually.holds("no state", SECONDS, () -> use(model).stateBytes() == 0);
        assertThat(use(model).live()).isZero();
        assertThat(use(model).stateCopies()).isEqualTo(moved);
        assertThat(GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                        .modelStatistics(ModelStatisticsRequest.newBuilder()
                                .setName(model)
                                .build())
                        .getModelStats(0)
                        .getBatchStatsList())
                .as("batches of four")
                .singleElement()
                .satisfies(batch -> assertThat(batch.getBatchSize()).isEqualTo(4));
    }

    @Test
    void copiesAreCountedOverAReload() throws Exception {
        batch("oldest", 1, true, true, ORDER);
        assertThat(use("oldest").stateCopies()).isEqualTo(4);
        Path config = directory.resolve("oldest/config.pbtxt");
        Files.writeString(
                config, Files.readString(config) + "parameters { key: \"p\" value { string_value: \"x\" } }\n");
        server.server()
                .control()
                .load(new ModelControl.Load("oldest", Optional.empty(), Map.of()))
                .toCompletableFuture()
                .get(SECONDS, TimeUnit.SECONDS);
        assertThat(use("oldest").stateCopies()).isEqualTo(4);
        batch("oldest", 1, true, true, ORDER);
        assertThat(use("oldest").stateCopies()).isEqualTo(8);
    }

    /** Sends a 1 to each sequence; the responses come in the order of the requests. */
    private void batch(String model, int sum, boolean start, boolean end, int... ids) throws InterruptedException {
        for (int id : ids) {
            stream.onNext(ClientRequest.of(model)
                    .input("INPUT", "FP32", TensorBytes.floats(1), 1, 1)
                    .output("OUTPUT")
                    .inSequence(id, start, end)
                    .overGrpc());
        }
        for (int i = 0; i < ids.length; i++) {
            Object response = responses.poll(SECONDS, TimeUnit.SECONDS);
            assertThat(response).isInstanceOfSatisfying(ModelStreamInferResponse.class, one -> {
                assertThat(one.getErrorMessage()).isEmpty();
                assertThat(one.getInferResponse()
                                .getRawOutputContents(0)
                                .asReadOnlyByteBuffer()
                                .order(ByteOrder.LITTLE_ENDIAN)
                                .getFloat())
                        .isEqualTo(sum);
            });
        }
    }

    private SequenceStatistics use(String model) {
        return server.server().models().sequences().stream()
                .filter(one -> one.model().name().equals(model))
                .findFirst()
                .orElseThrow();
    }
}
