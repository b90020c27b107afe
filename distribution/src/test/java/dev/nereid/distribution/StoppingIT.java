package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import dev.nereid.spi.MemoryPlace;
import inference.GRPCInferenceServiceGrpc;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests that a stopping server completes its requests and refuses others. Its ports are still open meanwhile. */
class StoppingIT {
    private static final String STOPPING =
            "Server is stopping, scheduler for model has stopped accepting new inference requests";

    @TempDir
    private Path directory;

    @Test
    void completesPendingRequestsAndRefusesNewOnes() throws Exception {
        Repository models = new Repository(directory.resolve("models")).model("gated", GatedPlugin.model());
        Path gate = GatedPlugin.close(models, "gated", "execute");
        Path plugins = GatedPlugin.pack(directory.resolve("plugins"));
        ClientRequest held = ClientRequest.of("gated").input("INPUT0", "FP32", TensorBytes.floats(1, 2), 1, 2);
        ClientRequest refused = held.withId("late");
        try (TestServer server =
                        TestServer.open(NereidServer.start(TestServer.of(models).withPlugins(plugins)));
                HttpConnection first = server.http();
                HttpConnection second = server.http()) {
            ManagedChannel channel = server.grpc();
            first.send(held.overHttp(), 0, held.overHttp().length);
            Eventually.holds("held", 30, () -> GatedPlugin.isWaitedAt(gate));

            CompletableFuture<Void> stopped = CompletableFuture.runAsync(server.server()::close);
            Eventually.holds("stopping", 10, () -> !server.server().isLive());
            // the model closes to requests a moment after the server's state changes; requests in between are held as
            // well
            Eventually.holds("refusing", 10, () -> isRefused(server.server()));

            RawHttpResponse overHttp = second.exchange(refused.overHttp());
            assertThat(overHttp.error()).isEqualTo("[request id: late] " + STOPPING);
            assertThat(overHttp.status()).isEqualTo(503);
            StatusRuntimeException overGrpc = catchThrowableOfType(
                    StatusRuntimeException.class,
                    () -> GRPCInferenceServiceGrpc.newBlockingStub(channel)
                            .withDeadlineAfter(60, TimeUnit.SECONDS)
                            .modelInfer(refused.overGrpc()));
            assertThat(overGrpc.getStatus().getDescription()).isEqualTo("[request id: late] " + STOPPING);
            assertThat(overGrpc.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);

            GatedPlugin.open(gate);
            RawHttpResponse response = first.read();
            assertThat(response.status()).as(response::text).isEqualTo(200);
            assertThat(response.binaryOutputs()).containsOnlyKeys("OUTPUT0");
            stopped.get(60, TimeUnit.SECONDS);
            channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        }
    }

    /** Sends a request without a port in between, where a refusal arrives at once. */
    private static boolean isRefused(InferenceServer server) {
        TensorBuffer memory = server.memory().allocate(Float.BYTES);
        InputTensor input = InputTensor.of("INPUT0", "FP32", new long[] {1, 1}, memory.segment(), MemoryPlace.HOST);
        AtomicBoolean refused = new AtomicBoolean();
        server.infer(InferRequest.of(ModelRef.latest("gated"), List.of(input), memory::close), new ResponseObserver() {
            @Override
            public void onResponse(InferResponse response) {
                response.close();
            }

            @Override
            public void onCompleted() {
                throw new AssertionError("end without a response");
            }

            @Override
            public void onError(InferenceException error) {
                refused.set(true);
            }
        });
        return refused.get();
    }
}
