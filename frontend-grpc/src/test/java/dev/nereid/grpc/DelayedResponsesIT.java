package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.assertFails;
import static dev.nereid.grpc.testing.TestFrontend.floats;
import static dev.nereid.grpc.testing.TestFrontend.request;
import static io.grpc.Status.Code.DEADLINE_EXCEEDED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import inference.ModelInferRequest;
import inference.ModelMetadataRequest;
import inference.ServerLiveRequest;
import inference.ServerLiveResponse;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** Tests delayed responses, with which clients time out. */
final class DelayedResponsesIT {
    private static final ServerLiveRequest LIVE = ServerLiveRequest.getDefaultInstance();
    private static final ModelInferRequest REQUEST =
            request("m", "FP32", floats(1), 1).build();

    private static TestFrontend delaying(Duration delay) {
        return delaying(grpc -> grpc.controlDelay = delay);
    }

    private static TestFrontend delaying(Consumer<GrpcOptions.Builder> change) {
        TestFrontend frontend = new TestFrontend(change);
        frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
        return frontend;
    }

    private static void assertLate(ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOfSatisfying(
                        StatusRuntimeException.class,
                        failure -> assertThat(failure.getStatus().getCode()).isEqualTo(DEADLINE_EXCEEDED));
    }

    @Test
    void delaysAllMethodsButInference() throws Exception {
        try (TestFrontend frontend = delaying(Duration.ofHours(1))) {
            GRPCInferenceServiceBlockingStub hasty = GRPCInferenceServiceGrpc.newBlockingStub(frontend.channel);

            assertLate(() -> hasty.withDeadlineAfter(300, TimeUnit.MILLISECONDS).serverLive(LIVE));
            assertLate(() -> hasty.withDeadlineAfter(300, TimeUnit.MILLISECONDS)
                    .modelMetadata(
                            ModelMetadataRequest.newBuilder().setName("none").build()));
            assertLate(() -> HealthGrpc.newBlockingStub(frontend.channel)
                    .withDeadlineAfter(300, TimeUnit.MILLISECONDS)
                    .check(HealthCheckRequest.getDefaultInstance()));

            assertThat(frontend.client.modelInfer(REQUEST).getRawOutputContents(0))
                    .isEqualTo(floats(1));
            StreamClient stream = StreamClient.open(frontend).send(REQUEST).halfClose();
            assertThat(stream.next().getInferResponse().getRawOutputContents(0)).isEqualTo(floats(1));
            assertThat(stream.end().isOk()).isTrue();
        }
    }

    @Test
    void sendsTheResponseOrTheErrorThen() {
        Duration delay = Duration.ofMillis(200);
        try (TestFrontend frontend = delaying(grpc -> {
            grpc.controlDelay = delay;
            grpc.access = ApiAccess.parse(List.of("model-config:k=v"));
        })) {
            long start = System.nanoTime();

            assertThat(frontend.client.serverLive(LIVE).getLive()).isTrue();
            assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(delay.toNanos());

            assertFails(
                    () -> frontend.client.modelMetadata(
                            ModelMetadataRequest.newBuilder().setName("none").build()),
                    Status.Code.NOT_FOUND,
                    "Request for unknown model: 'none' is not found");
            assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(2 * delay.toNanos());
        }
    }

    @Test
    void endsWaitingCallsWhenTheServerStops() throws Exception {
        TestFrontend frontend = delaying(grpc -> {
            grpc.controlDelay = Duration.ofHours(1);
            grpc.closeTimeout = Duration.ofMillis(200);
        });
        try (frontend) {
            CompletableFuture<ServerLiveResponse> response = new CompletableFuture<>();
            GRPCInferenceServiceGrpc.newStub(frontend.channel).serverLive(LIVE, new StreamObserver<>() {
                @Override
                public void onNext(ServerLiveResponse live) {
                    response.complete(live);
                }

                @Override
                public void onError(Throwable failure) {
                    response.completeExceptionally(failure);
                }

                @Override
                public void onCompleted() {}
            });
            assertThat(frontend.client.modelInfer(REQUEST).getModelName()).isEqualTo("m");

            frontend.frontend.close();

            assertThatThrownBy(() -> response.get(20, TimeUnit.SECONDS))
                    .hasCauseInstanceOf(StatusRuntimeException.class);
        }
    }
}
