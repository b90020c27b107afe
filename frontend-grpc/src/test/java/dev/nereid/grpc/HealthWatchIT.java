package dev.nereid.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import io.grpc.Context;
import io.grpc.Status;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.stub.StreamObserver;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

final class HealthWatchIT {
    @AutoClose
    private final TestFrontend frontend = new TestFrontend();

    @BeforeEach
    void addModel() {
        frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
    }

    /** A client that watches. */
    private static final class Watcher implements StreamObserver<HealthCheckResponse> {
        private final BlockingQueue<ServingStatus> statuses = new LinkedBlockingQueue<>();
        private final CompletableFuture<Status> end = new CompletableFuture<>();

        static Watcher of(TestFrontend frontend, String service) {
            Watcher watcher = new Watcher();
            HealthGrpc.newStub(frontend.channel)
                    .watch(HealthCheckRequest.newBuilder().setService(service).build(), watcher);
            return watcher;
        }

        ServingStatus next() throws InterruptedException {
            return statuses.poll(20, TimeUnit.SECONDS);
        }

        @Override
        public void onNext(HealthCheckResponse response) {
            statuses.add(response.getStatus());
        }

        @Override
        public void onError(Throwable failure) {
            end.complete(Status.fromThrowable(failure));
        }

        @Override
        public void onCompleted() {
            end.complete(Status.OK);
        }
    }

    @Test
    void sendsTheStatusAndItsChanges() throws InterruptedException {
        Watcher server = Watcher.of(frontend, "");
        Watcher service = Watcher.of(frontend, "inference.GRPCInferenceService");
        Watcher model = Watcher.of(frontend, "m");
        Watcher unknown = Watcher.of(frontend, "nope");

        assertThat(server.next()).isEqualTo(ServingStatus.SERVING);
        assertThat(service.next()).isEqualTo(ServingStatus.SERVING);
        assertThat(model.next()).isEqualTo(ServingStatus.SERVING);
        assertThat(unknown.next()).isEqualTo(ServingStatus.SERVICE_UNKNOWN);

        frontend.server.setReady(false);
        assertThat(server.next()).isEqualTo(ServingStatus.NOT_SERVING);
        assertThat(service.next()).isEqualTo(ServingStatus.NOT_SERVING);

        frontend.server.setReady(true);
        frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1).ready(false));
        frontend.server.add(FakeModel.identity("nope", DataType.FP32, 0, -1));
        assertThat(server.next()).isEqualTo(ServingStatus.SERVING);
        assertThat(model.next()).isEqualTo(ServingStatus.NOT_SERVING);
        assertThat(unknown.next()).isEqualTo(ServingStatus.SERVING);
        assertThat(model.statuses).isEmpty();
    }

    @Test
    void removesWatchersThatCancel() throws InterruptedException {
        try (Context.CancellableContext context = Context.current().withCancellation()) {
            Watcher[] watcher = new Watcher[1];
            context.run(() -> watcher[0] = Watcher.of(frontend, ""));
            assertThat(watcher[0].next()).isEqualTo(ServingStatus.SERVING);
        }
        Watcher other = Watcher.of(frontend, "");
        assertThat(other.next()).isEqualTo(ServingStatus.SERVING);

        frontend.server.setReady(false);

        assertThat(other.next()).isEqualTo(ServingStatus.NOT_SERVING);
    }

    @Test
    void reportsThatTheServerShutsDown() throws Exception {
        Watcher watcher = Watcher.of(frontend, "m");
        assertThat(watcher.next()).isEqualTo(ServingStatus.SERVING);

        frontend.frontend.close();

        assertThat(watcher.next()).isEqualTo(ServingStatus.NOT_SERVING);
        assertThat(watcher.end.get(20, TimeUnit.SECONDS).getCode()).isEqualTo(Status.Code.UNAVAILABLE);
    }
}
