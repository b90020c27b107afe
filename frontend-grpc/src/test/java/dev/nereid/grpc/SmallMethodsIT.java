package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.assertFails;
import static io.grpc.Status.Code.INVALID_ARGUMENT;
import static io.grpc.Status.Code.NOT_FOUND;
import static io.grpc.Status.Code.UNIMPLEMENTED;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeModel;
import inference.LogSettingsRequest;
import inference.ModelConfigRequest;
import inference.ModelMetadataRequest;
import inference.ModelMetadataResponse;
import inference.ModelReadyRequest;
import inference.ServerLiveRequest;
import inference.ServerMetadataRequest;
import inference.ServerMetadataResponse;
import inference.ServerReadyRequest;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.reflection.v1.ServerReflectionGrpc;
import io.grpc.reflection.v1.ServerReflectionRequest;
import io.grpc.reflection.v1.ServerReflectionResponse;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

final class SmallMethodsIT {
    @AutoClose
    private final TestFrontend frontend = new TestFrontend();

    @BeforeEach
    void addModels() {
        frontend.server.add(FakeModel.identity("m", DataType.FP32, 8, -1, 2));
        frontend.server.add(FakeModel.identity("flat", DataType.BYTES, 0, 3));
        frontend.server.add(FakeModel.identity("broken", DataType.BYTES, 0, 3).ready(false));
    }

    @Test
    void reportsWhetherTheServerIsLive() {
        assertThat(live()).isTrue();
        assertThat(ready()).isTrue();

        frontend.server.setLive(false);
        frontend.server.setReady(false);

        assertThat(live()).isFalse();
        assertThat(ready()).isFalse();
    }

    private boolean live() {
        return frontend.client
                .serverLive(ServerLiveRequest.getDefaultInstance())
                .getLive();
    }

    private boolean ready() {
        return frontend.client
                .serverReady(ServerReadyRequest.getDefaultInstance())
                .getReady();
    }

    @Test
    void reportsWhetherModelsAreReady() {
        assertThat(modelReady("m", "")).isTrue();
        assertThat(modelReady("m", "1")).isTrue();
        assertThat(modelReady("m", "9")).isFalse();
        assertThat(modelReady("nope", "")).isFalse();
        assertThat(modelReady("broken", "")).isFalse();
        assertFails(
                () -> modelReady("m", "-1"),
                INVALID_ARGUMENT,
                "invalid model version specified '-1' , version should be an integral value > 0");
    }

    @Test
    void refusesToSayWhetherAModelWithoutANameIsReady() {
        assertFails(() -> modelReady("", ""), NOT_FOUND, "Request for unknown model: '' is not found");
        assertFails(() -> modelReady("", "3"), NOT_FOUND, "Request for unknown model: '' version 3 is not found");
    }

    private boolean modelReady(String name, String version) {
        return frontend.client
                .modelReady(ModelReadyRequest.newBuilder()
                        .setName(name)
                        .setVersion(version)
                        .build())
                .getReady();
    }

    @Test
    void checksReadinessWithoutHoldingTheEventLoop() throws Exception {
        CompletableFuture<ModelCatalog.Readiness> check = new CompletableFuture<>();
        CountDownLatch begun = new CountDownLatch(2);
        frontend.server.setReadiness(_ -> {
            begun.countDown();
            return check;
        });
        CompletableFuture<Boolean> ready =
                CompletableFuture.supplyAsync(() -> modelReady("m", ""), Thread::startVirtualThread);
        CompletableFuture<ServingStatus> health =
                CompletableFuture.supplyAsync(() -> health("m"), Thread::startVirtualThread);
        begun.await();
        assertThat(frontend.client
                        .serverMetadata(ServerMetadataRequest.getDefaultInstance())
                        .getName())
                .isEqualTo("fake");
        assertThat(ready).isNotDone();
        assertThat(health).isNotDone();

        check.complete(ModelCatalog.Readiness.notReady(ErrorCode.INTERNAL, "process has ended"));

        assertThat(ready.join()).isFalse();
        assertThat(health.join()).isEqualTo(ServingStatus.NOT_SERVING);
        frontend.server.setReadiness(_ -> CompletableFuture.completedStage(ModelCatalog.Readiness.READY));
        assertThat(modelReady("m", "")).isTrue();
        frontend.server.setReadiness(_ ->
                CompletableFuture.failedStage(new InferenceException(ErrorCode.UNAVAILABLE, "unloaded meanwhile")));
        assertThat(modelReady("m", "")).isFalse();
        assertThat(health("m")).isEqualTo(ServingStatus.NOT_SERVING);
    }

    @Test
    void describesTheServer() {
        assertThat(frontend.client.serverMetadata(ServerMetadataRequest.getDefaultInstance()))
                .isEqualTo(ServerMetadataResponse.newBuilder()
                        .setName("fake")
                        .setVersion("0.0")
                        .addExtensions("binary_tensor_data")
                        .build());
    }

    @Test
    void describesModels() {
        ModelMetadataResponse.Builder expected =
                ModelMetadataResponse.newBuilder().setName("m").addVersions("1").setPlatform("identity");
        expected.addInputsBuilder().setName("INPUT0").setDatatype("FP32").addAllShape(List.of(-1L, -1L, 2L));
        expected.addOutputsBuilder().setName("OUTPUT0").setDatatype("FP32").addAllShape(List.of(-1L, -1L, 2L));

        assertThat(metadata("m")).isEqualTo(expected.build());
        assertThat(metadata("flat").getInputs(0).getShapeList()).containsExactly(3L);
        assertFails(() -> metadata("nope"), NOT_FOUND, "Request for unknown model: 'nope' is not found");
    }

    private ModelMetadataResponse metadata(String name) {
        return frontend.client.modelMetadata(
                ModelMetadataRequest.newBuilder().setName(name).build());
    }

    @Test
    void returnsConfigurations() {
        assertThat(frontend.client
                        .modelConfig(
                                ModelConfigRequest.newBuilder().setName("m").build())
                        .getConfig()
                        .getMaxBatchSize())
                .isEqualTo(8);
        assertFails(
                () -> frontend.client.modelConfig(
                        ModelConfigRequest.newBuilder().setName("nope").build()),
                NOT_FOUND,
                "Request for unknown model: 'nope' is not found");
    }

    @Test
    void refusesMethodsThatAreNotImplemented() {
        assertFails(
                () -> frontend.client.logSettings(LogSettingsRequest.getDefaultInstance()),
                UNIMPLEMENTED,
                "Method inference.GRPCInferenceService/LogSettings is unimplemented");
    }

    @Test
    void reportsHealth() {
        assertThat(health("")).isEqualTo(ServingStatus.SERVING);
        assertThat(health("inference.GRPCInferenceService")).isEqualTo(ServingStatus.SERVING);
        assertThat(health("m")).isEqualTo(ServingStatus.SERVING);
        assertThat(health("broken")).isEqualTo(ServingStatus.NOT_SERVING);
        assertFails(() -> health("foo"), NOT_FOUND, "unknown service 'foo'");

        frontend.server.setReady(false);

        assertThat(health("")).isEqualTo(ServingStatus.NOT_SERVING);
    }

    private ServingStatus health(String service) {
        return HealthGrpc.newBlockingStub(frontend.channel)
                .check(HealthCheckRequest.newBuilder().setService(service).build())
                .getStatus();
    }

    @Test
    void describesItself() throws Exception {
        assertThat(reflect(ServerReflectionRequest.newBuilder()
                                .setListServices("")
                                .build())
                        .getListServicesResponse()
                        .getServiceList())
                .extracting(service -> service.getName())
                .contains("inference.GRPCInferenceService", "grpc.health.v1.Health");
        assertThat(reflect(ServerReflectionRequest.newBuilder()
                                .setFileContainingSymbol("inference.GRPCInferenceService")
                                .build())
                        .getFileDescriptorResponse()
                        .getFileDescriptorProtoList())
                .isNotEmpty();
    }

    private ServerReflectionResponse reflect(ServerReflectionRequest request) throws Exception {
        CompletableFuture<List<ServerReflectionResponse>> responses = new CompletableFuture<>();
        List<ServerReflectionResponse> received = new ArrayList<>();
        StreamObserver<ServerReflectionRequest> requests = ServerReflectionGrpc.newStub(frontend.channel)
                .serverReflectionInfo(new StreamObserver<>() {
                    @Override
                    public void onNext(ServerReflectionResponse response) {
                        received.add(response);
                    }

                    @Override
                    public void onError(Throwable failure) {
                        responses.completeExceptionally(failure);
                    }

                    @Override
                    public void onCompleted() {
                        responses.complete(received);
                    }
                });
        requests.onNext(request);
        requests.onCompleted();
        return responses.get().getFirst();
    }
}
