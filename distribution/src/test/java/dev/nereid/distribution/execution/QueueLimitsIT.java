package dev.nereid.distribution.execution;

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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests refusals by the limits of a queue. They are tested over both protocols, while the only instance is busy. */
class QueueLimitsIT {
    private static final long TIMEOUT_MILLIS = 1_000;

    @TempDir
    private Path directory;

    @Test
    void rejectsWhatWaitsForTooLong() throws Exception {
        long start = System.nanoTime();

        refuses("default_timeout_microseconds: " + TIMEOUT_MILLIS * 1_000, 1, "Request timeout expired");

        assertThat(System.nanoTime() - start).isGreaterThan(TimeUnit.MILLISECONDS.toNanos(2 * TIMEOUT_MILLIS));
    }

    @Test
    void refusesWhatIsOneTooMuch() throws Exception {
        refuses("max_queue_size: 1", 2, "[request id: late] Exceeds maximum queue size");
    }

    /**
     * Starts one long execution, and sends more requests to the model.
     *
     * @param policy the policy of its queue
     * @param before the number of requests before it; they complete in the end
     * @param text how the others are refused
     */
    private void refuses(String policy, int before, String text) throws Exception {
        String batching = "dynamic_batching { default_queue_policy { " + policy + " } }";
        Repository models = new Repository(directory.resolve("models")).model("gated", GatedPlugin.model() + batching);
        Path gate = GatedPlugin.close(models, "gated", "execute");
        Path plugins = GatedPlugin.pack(directory.resolve("plugins"));
        ClientRequest late =
                ClientRequest.of("gated").withId("late").input("INPUT0", "FP32", TensorBytes.floats(1, 2), 1, 2);
        try (TestServer server =
                        TestServer.open(NereidServer.start(TestServer.of(models).withPlugins(plugins)));
                HttpConnection http = server.http()) {
            ManagedChannel channel = server.grpc();
            CompletableFuture<Void> first = submit(server.server());
            Eventually.holds("held", 30, () -> GatedPlugin.isWaitedAt(gate));
            CompletableFuture<Void> last = before == 1 ? first : submit(server.server());

            RawHttpResponse overHttp = http.exchange(late.overHttp());
            assertThat(overHttp.error()).isEqualTo(text);
            assertThat(overHttp.status()).isEqualTo(503);
            StatusRuntimeException overGrpc = catchThrowableOfType(
                    StatusRuntimeException.class,
                    () -> GRPCInferenceServiceGrpc.newBlockingStub(channel)
                            .withDeadlineAfter(60, TimeUnit.SECONDS)
                            .modelInfer(late.overGrpc()));
            assertThat(overGrpc.getStatus().getDescription()).isEqualTo(text);
            assertThat(overGrpc.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);

            GatedPlugin.open(gate);
            first.get(60, TimeUnit.SECONDS);
            last.get(60, TimeUnit.SECONDS);
            channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        }
    }

    /** Sends a request without a port in between, so that it is in the queue at the return. */
    private static CompletableFuture<Void> submit(InferenceServer server) {
        TensorBuffer memory = server.memory().allocate(Float.BYTES);
        InputTensor input = InputTensor.of("INPUT0", "FP32", new long[] {1, 1}, memory.segment(), MemoryPlace.HOST);
        CompletableFuture<Void> completed = new CompletableFuture<>();
        server.infer(InferRequest.of(ModelRef.latest("gated"), List.of(input), memory::close), new ResponseObserver() {
            @Override
            public void onResponse(InferResponse response) {
                response.close();
                completed.complete(null);
            }

            @Override
            public void onCompleted() {
                completed.completeExceptionally(new AssertionError("end without a response"));
            }

            @Override
            public void onError(InferenceException error) {
                completed.completeExceptionally(error);
            }
        });
        return completed;
    }
}
