package dev.nereid.distribution.parity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.TensorBytes;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferRequest.InferInputTensor;
import inference.ModelInferRequest.InferRequestedOutputTensor;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import inference.SystemSharedMemoryRegisterRequest;
import inference.SystemSharedMemoryUnregisterRequest;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests clients of ensembles that leave before the response, that have a deadline, and that share memory. */
@Timeout(120)
final class EnsembleClientsIT {
    private static final Path SEGMENTS = Path.of("/dev/shm");
    private static final String KEY =
            "nereid-ensemble-" + ProcessHandle.current().pid();
    private static final int SIZE = 8;
    private static final long DEADLINE_MILLIS = 500;

    @TempDir
    private static Path directory;

    private static EnsembleServer server;
    private static ManagedChannel channel;

    @BeforeAll
    static void start() throws IOException, InterruptedException {
        server = new EnsembleServer(directory);
        channel = server.server().grpc();
    }

    @AfterEach
    void awaitCompletion() {
        server.awaitCompletion();
    }

    @AfterAll
    static void stop() throws InterruptedException {
        channel.shutdownNow().awaitTermination(EnsembleServer.SECONDS, TimeUnit.SECONDS);
        server.close();
    }

    private static GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub stub() {
        return GRPCInferenceServiceGrpc.newBlockingStub(channel)
                .withDeadlineAfter(EnsembleServer.SECONDS, TimeUnit.SECONDS);
    }

    /** Returns a request that stays in the second step until it is cancelled, and would wait in the third one. */
    private static ModelInferRequest overGrpc(String id) {
        return ModelInferRequest.newBuilder()
                .setModelName("chain")
                .setId(id)
                .putParameters("second", text("cancel"))
                .putParameters("third", text("gate"))
                .addInputs(InferInputTensor.newBuilder()
                        .setName("INPUT0")
                        .setDatatype("FP32")
                        .addShape(1)
                        .addShape(1))
                .addRawInputContents(ByteString.copyFrom(TensorBytes.floats(1)))
                .build();
    }

    private static byte[] overHttp(String id) {
        return HttpRequests.json(
                "chain",
                "{\"id\":\"" + id + "\",\"parameters\":{\"second\":\"cancel\",\"third\":\"gate\"},"
                        + "\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,1],\"data\":[1]}]}");
    }

    private static InferParameter text(String value) {
        return InferParameter.newBuilder().setStringParam(value).build();
    }

    @Test
    void aDeadlineEndsAStep() throws Exception {
        long failed = failed();

        StatusRuntimeException late = catchThrowableOfType(
                StatusRuntimeException.class,
                () -> stub().withDeadlineAfter(DEADLINE_MILLIS, TimeUnit.MILLISECONDS)
                        .modelInfer(overGrpc("late")));

        assertThat(late.getStatus().getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
        requireCancelled("late", failed);
    }

    @Test
    void aClientThatDisconnectsEndsAStep() throws Exception {
        long failed = failed();
        HttpConnection http = server.server().http();
        byte[] request = overHttp("gone");
        http.send(request, 0, request.length);
        server.models().awaitWaiting("gone", "second");

        http.abandon();

        requireCancelled("gone", failed);
    }

    @Test
    void aCancelledCallEndsAStep() throws Exception {
        long failed = failed();
        ClientCall<ModelInferRequest, ModelInferResponse> call =
                begin(GRPCInferenceServiceGrpc.getModelInferMethod(), "cancelled");

        call.cancel("the test goes", null);

        requireCancelled("cancelled", failed);
    }

    @Test
    void aCancelledStreamEndsAStep() throws Exception {
        long failed = failed();
        ClientCall<ModelInferRequest, ModelStreamInferResponse> call =
                begin(GRPCInferenceServiceGrpc.getModelStreamInferMethod(), "streamed");

        call.cancel("the test goes", null);

        requireCancelled("streamed", failed);
    }

    private static <T> ClientCall<ModelInferRequest, T> begin(
            MethodDescriptor<ModelInferRequest, T> method, String id) {
        ClientCall<ModelInferRequest, T> call = channel.newCall(method, CallOptions.DEFAULT);
        call.start(new ClientCall.Listener<>() {}, new Metadata());
        call.sendMessage(overGrpc(id));
        call.halfClose();
        server.models().awaitWaiting(id, "second");
        return call;
    }

    private static long failed() {
        return server.statistics("chain").inferences().fail().count();
    }

    /** The second step ended, the third was never begun, and the request is counted. */
    private static void requireCancelled(String id, long failedBefore) {
        server.awaitCompletion();
        Eventually.holds("counted", EnsembleServer.SECONDS, () -> failed() == failedBefore + 1);
        assertThat(server.models().isWaiting(id, "third")).isFalse();
    }

    @Test
    void inputsAndOutputsLieInSharedMemory() throws Exception {
        assumeTrue(Files.isWritable(SEGMENTS), SEGMENTS + " is not there");
        Path segment = Files.write(SEGMENTS.resolve(KEY), TensorBytes.floats(1, 2, 0, 0, 0, 0));
        try (HttpConnection http = server.server().http()) {
            stub().systemSharedMemoryRegister(SystemSharedMemoryRegisterRequest.newBuilder()
                    .setName("region")
                    .setKey(KEY)
                    .setByteSize(3 * SIZE)
                    .build());

            RawHttpResponse response = http.exchange(HttpRequests.json("chain", """
                    {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "parameters":
                      {"shared_memory_region": "region", "shared_memory_byte_size": 8}}],
                     "outputs": [{"name": "OUTPUT0", "parameters": {"shared_memory_region": "region",
                       "shared_memory_offset": 8, "shared_memory_byte_size": 8}}]}
                    """));
            stub().modelInfer(ModelInferRequest.newBuilder()
                    .setModelName("chain")
                    .addInputs(InferInputTensor.newBuilder()
                            .setName("INPUT0")
                            .setDatatype("FP32")
                            .addShape(1)
                            .addShape(2)
                            .putAllParameters(place(SIZE)))
                    .addOutputs(InferRequestedOutputTensor.newBuilder()
                            .setName("OUTPUT0")
                            .putAllParameters(place(2 * SIZE)))
                    .build());

            assertThat(response.status()).as(response::text).isEqualTo(200);
            assertThat(TensorBytes.toFloats(Files.readAllBytes(segment))).containsExactly(1, 2, 112, 113, 223, 224);
        } finally {
            stub().systemSharedMemoryUnregister(SystemSharedMemoryUnregisterRequest.getDefaultInstance());
            Files.delete(segment);
        }
    }

    private static Map<String, InferParameter> place(int offset) {
        return Map.of(
                "shared_memory_region",
                text("region"),
                "shared_memory_offset",
                InferParameter.newBuilder().setInt64Param(offset).build(),
                "shared_memory_byte_size",
                InferParameter.newBuilder().setInt64Param(SIZE).build());
    }
}
