package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.assertFails;
import static dev.nereid.grpc.testing.TestFrontend.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.RequestProtocol;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelReadyRequest;
import inference.ModelRepositoryParameter;
import inference.RepositoryModelLoadRequest;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.reflection.v1.ServerReflectionGrpc;
import io.grpc.reflection.v1.ServerReflectionRequest;
import io.grpc.stub.ClientCalls;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests memory limits of requests and of long messages. */
@Timeout(60)
final class BoundedRequestsIT {
    private static final int MIB = 1 << 20;

    private final TestFrontend frontend = new TestFrontend();

    private <Q, R> ClientCall<Q, R> begin(MethodDescriptor<Q, R> method, Q request, CallOptions options) {
        ClientCall<Q, R> call = frontend.channel.newCall(
                method.toBuilder()
                        .setType(MethodDescriptor.MethodType.BIDI_STREAMING)
                        .build(),
                options);
        call.start(new ClientCall.Listener<>() {}, new Metadata());
        call.sendMessage(request);
        return call;
    }

    private void awaitBytes(long min) {
        TestFrontend.await(() -> frontend.memory.bytesInUse() >= min);
    }

    private static ServerReflectionRequest reflection(int length) {
        return ServerReflectionRequest.newBuilder()
                .setFileByFilename("x".repeat(length))
                .build();
    }

    private void reflect(MethodDescriptor<ServerReflectionRequest, ?> method, ServerReflectionRequest request) {
        ClientCalls.blockingServerStreamingCall(
                        frontend.channel,
                        method.toBuilder()
                                .setType(MethodDescriptor.MethodType.SERVER_STREAMING)
                                .build(),
                        CallOptions.DEFAULT,
                        request)
                .forEachRemaining(response -> assertThat(response).isNotNull());
    }

    @Test
    void refusesLongRequestsForReflection() {
        try (frontend) {
            ServerReflectionRequest large = reflection(MIB);

            assertFails(
                    () -> reflect(ServerReflectionGrpc.getServerReflectionInfoMethod(), large),
                    Status.Code.INVALID_ARGUMENT,
                    "gRPC message exceeds maximum size 8192: " + large.getSerializedSize());
            assertFails(
                    () -> reflect(
                            ServerReflectionGrpc.getServerReflectionInfoMethod().toBuilder()
                                    .setFullMethodName("grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
                                    .build(),
                            large),
                    Status.Code.INVALID_ARGUMENT,
                    "gRPC message exceeds maximum size 8192: " + large.getSerializedSize());
            reflect(ServerReflectionGrpc.getServerReflectionInfoMethod(), reflection(100));
        }
    }

    @Test
    void refusesLongRequestsOfControlMethods() {
        try (frontend) {
            ModelReadyRequest large =
                    ModelReadyRequest.newBuilder().setName("x".repeat(100_000)).build();
            HealthCheckRequest service = HealthCheckRequest.newBuilder()
                    .setService("x".repeat(100_000))
                    .build();

            assertFails(
                    () -> frontend.client.modelReady(large),
                    Status.Code.INVALID_ARGUMENT,
                    "gRPC message exceeds maximum size 65536: " + large.getSerializedSize());
            assertFails(
                    () -> frontend.client.withCompression("gzip").modelReady(large),
                    Status.Code.INVALID_ARGUMENT,
                    "gRPC message exceeds maximum size 65536");
            assertFails(
                    () -> HealthGrpc.newBlockingStub(frontend.channel).check(service),
                    Status.Code.INVALID_ARGUMENT,
                    "gRPC message exceeds maximum size 65536: " + service.getSerializedSize());
        }
    }

    @Test
    void countsRequestsOfControlMethodsUntilTheirCallsEnd() {
        try (frontend) {
            ModelReadyRequest name =
                    ModelReadyRequest.newBuilder().setName("x".repeat(50_000)).build();
            HealthCheckRequest service = HealthCheckRequest.newBuilder()
                    .setService("x".repeat(50_000))
                    .build();
            var ready = begin(GRPCInferenceServiceGrpc.getModelReadyMethod(), name, CallOptions.DEFAULT);
            var watch = begin(HealthGrpc.getWatchMethod(), service, CallOptions.DEFAULT);
            awaitBytes(100_000);
            watch.halfClose();

            ready.cancel("enough", null);
            TestFrontend.await(() -> frontend.memory.bytesInUse() < 60_000);
            assertThat(frontend.memory.bytesInUse()).isGreaterThanOrEqualTo(50_000);
            watch.cancel("enough", null);

            TestFrontend.await(() -> frontend.memory.bytesInUse() == 0);
            assertThat(frontend.client.modelReady(name).getReady()).isFalse();
            TestFrontend.await(() -> frontend.memory.bytesInUse() == 0);
        }
    }

    private static RepositoryModelLoadRequest load(int bytes) {
        return RepositoryModelLoadRequest.newBuilder()
                .setModelName("new")
                .putParameters(
                        "file:1/model",
                        ModelRepositoryParameter.newBuilder()
                                .setBytesParam(ByteString.copyFrom(new byte[bytes]))
                                .build())
                .build();
    }

    @Test
    void countsMessagesThatWaitForTheEndOfTheirRequest() {
        try (frontend) {
            frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
            var load =
                    begin(GRPCInferenceServiceGrpc.getRepositoryModelLoadMethod(), load(2 * MIB), CallOptions.DEFAULT);
            var infer = begin(GRPCInferenceServiceGrpc.getModelInferMethod(), large("m"), CallOptions.DEFAULT);
            awaitBytes(4 * MIB);

            load.halfClose();
            TestFrontend.await(() -> !frontend.server.control().loads().isEmpty());
            infer.cancel("enough", null);

            TestFrontend.await(() -> frontend.memory.bytesInUse() == 0);
        }
    }

    @Test
    void countsFilesOnTheHeap() {
        try (frontend;
                TestFrontend small = new TestFrontend(_ -> {}, 4 * MIB)) {
            small.client.withCompression("gzip").repositoryModelLoad(load(3 * MIB));
            assertThat(small.memory.bytesInUse()).isZero();
            assertThatThrownBy(() -> small.client.withCompression("gzip").repositoryModelLoad(load(5 * MIB)))
                    .hasMessageContaining("UNAVAILABLE: out of memory");
            assertThat(small.memory.bytesInUse()).isZero();
        }
    }

    @Test
    void releasesRequestsOfMethodsThatFail() {
        try (frontend) {
            frontend.server.control().breakWith(new IllegalStateException("broken, says the test"));

            assertFails(
                    () -> frontend.client.repositoryModelLoad(load(100_000)), Status.Code.INTERNAL, "internal error");

            TestFrontend.await(() -> frontend.memory.bytesInUse() == 0);
        }
    }

    private static ModelInferRequest large(String model) {
        return request(model, "FP32", ByteString.copyFrom(new byte[2 * MIB]), MIB / 2)
                .build();
    }

    @Test
    void respondsToLongRequests() throws Exception {
        try (frontend) {
            frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1).responding(call -> {
                call.request().release().run();
                throw new AssertionError("says the test");
            }));

            assertFails(() -> frontend.client.modelInfer(large("m")), Status.Code.INTERNAL, "internal error");
            StreamClient stream = StreamClient.open(frontend).send(large("m"));
            assertThat(stream.end().getCode()).isEqualTo(Status.Code.INTERNAL);
        }
    }

    @Test
    void readsLongRequestsOnTheGivenThreads() {
        try (frontend) {
            frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
            ThreadPoolExecutor workers = (ThreadPoolExecutor) frontend.workers;

            frontend.client.modelInfer(large("m"));

            assertThat(workers.getTaskCount()).isPositive();
            workers.shutdown();
            assertFails(
                    () -> frontend.client.modelInfer(large("m")),
                    Status.Code.UNAVAILABLE,
                    "GRPC server is shutting down and has stopped accepting new requests.");
            frontend.awaitNoMemory();
        }
    }

    @Test
    void readsLongTypedContentsOnWorkersAndRawOnesOnTheEventLoop() {
        try (frontend) {
            frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
            ThreadPoolExecutor workers = (ThreadPoolExecutor) frontend.workers;
            int count = 100_000;
            ModelInferRequest.Builder typed = ModelInferRequest.newBuilder().setModelName("m");
            var input = typed.addInputsBuilder()
                    .setName("INPUT0")
                    .setDatatype("FP32")
                    .addShape(count);
            for (int i = 0; i < count; i++) {
                input.getContentsBuilder().addFp32Contents(i);
            }

            frontend.client.modelInfer(request("m", "FP32", ByteString.copyFrom(new byte[4 * count]), count)
                    .build());
            assertThat(workers.getTaskCount()).isZero();
            frontend.client.modelInfer(typed.build());
            assertThat(workers.getTaskCount()).isEqualTo(1);
        }
    }

    @Test
    void refusesLongNamesAndParameters() {
        try (frontend) {
            frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
            ByteString one = TestFrontend.floats(1);
            String name = "é".repeat(40_000);
            String quoted = "é".repeat(256) + "…";

            assertFails(
                    () -> frontend.client.modelInfer(
                            request("m", "FP32", one, 1).setId(name).build()),
                    Status.Code.INVALID_ARGUMENT,
                    "request id '" + quoted + "' takes 80000 bytes (expected: at most 65536)");
            assertThatThrownBy(() -> frontend.client.modelInfer(request("m", "FP32", one, 1)
                            .putParameters(
                                    "p",
                                    InferParameter.newBuilder()
                                            .setStringParam(name)
                                            .build())
                            .build()))
                    .hasMessageStartingWith("INVALID_ARGUMENT: parameter value 'é");
            ModelInferRequest.Builder many = request("m", "FP32", one, 1);
            for (int i = 0; i < 70; i++) {
                many.putParameters(
                        "p" + i,
                        InferParameter.newBuilder()
                                .setStringParam("x".repeat(60_000))
                                .build());
            }
            assertFails(
                    () -> frontend.client.modelInfer(many.build()),
                    Status.Code.INVALID_ARGUMENT,
                    "names and parameters of the request take more than 4194304 bytes (expected: at most so many)");
        }
    }

    @Test
    void countsLongParametersUntilTheResponse() {
        try (frontend) {
            BlockingQueue<ReceivedRequest> calls = new LinkedBlockingQueue<>();
            frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1).responding(calls::add));
            ModelInferRequest request = request("m", "FP32", TestFrontend.floats(1), 1)
                    .putParameters(
                            "p",
                            InferParameter.newBuilder()
                                    .setStringParam("x".repeat(60_000))
                                    .build())
                    .build();
            var call = begin(GRPCInferenceServiceGrpc.getModelInferMethod(), request, CallOptions.DEFAULT);
            call.halfClose();
            TestFrontend.await(() -> !calls.isEmpty());

            assertThat(frontend.memory.bytesInUse()).isGreaterThan(60_000);
            calls.remove().respondWithInputs();

            TestFrontend.await(() -> frontend.memory.bytesInUse() == 0);
        }
    }

    private long refused(RefusalCause cause) {
        return frontend.server.refusals().refused(RequestProtocol.GRPC, cause);
    }

    @Test
    void countsCallsOfUnknownMethods() {
        try (frontend) {
            var method = GRPCInferenceServiceGrpc.getServerLiveMethod().toBuilder()
                    .setFullMethodName("inference.GRPCInferenceService/Nothing")
                    .build();

            assertFails(
                    () -> ClientCalls.blockingUnaryCall(
                            frontend.channel,
                            method,
                            CallOptions.DEFAULT,
                            inference.ServerLiveRequest.getDefaultInstance()),
                    Status.Code.UNIMPLEMENTED,
                    "Method not found: inference.GRPCInferenceService/Nothing");

            assertThat(refused(RefusalCause.UNKNOWN_PATH)).isEqualTo(1);
        }
    }
}
