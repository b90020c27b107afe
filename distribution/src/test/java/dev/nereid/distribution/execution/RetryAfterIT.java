package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TensorBytes;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferResponse;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Refusals of the installed server under too much load, and their retry times. */
@Tag("slow")
final class RetryAfterIT {
    private static final int TIMEOUT_SECONDS = 120;
    private static final Metadata.Key<String> PUSHBACK =
            Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);
    private static final String REQUESTS = "[request id: late] Exceeds maximum number of requests in flight";
    private static final String BYTES = "[request id: late] Exceeds maximum number of bytes in flight";
    private static final String FULL = "[request id: late] Exceeds maximum queue size";

    @TempDir
    private Path directory;

    private Repository models;
    private Path gate;

    @Test
    void boundsTheRequestsOfAModel() throws Exception {
        refuses(REQUESTS, "", "--model-max-inflight-requests=1");
    }

    @Test
    void boundsTheRequestsOfTheServer() throws Exception {
        refuses(REQUESTS, "", "--max-inflight-requests=1");
    }

    @Test
    void boundsTheBytesOfAModel() throws Exception {
        refuses(BYTES, "", "--model-max-inflight-bytes=15");
    }

    @Test
    void boundsTheBytesOfTheServer() throws Exception {
        refuses(BYTES, "", "--max-inflight-bytes=15");
    }

    @Test
    void reportsTheSameForAFullQueue() throws Exception {
        refuses(FULL, "dynamic_batching { default_queue_policy { max_queue_size: 1 } }");
    }

    /** A client with a retry policy of its own waits for the server's retry time, not for that of its policy. */
    @Test
    void grpcClientsThatRetryHonorIt() throws Exception {
        try (InstalledServer server = serve("", "--model-max-inflight-requests=1")) {
            CompletableFuture<HttpResponse<String>> first = infer(server, "first");
            Eventually.holds("held", TIMEOUT_SECONDS, () -> GatedPlugin.isWaitedAt(gate));
            ManagedChannel channel = retrying(server);

            CompletableFuture<ModelInferResponse> retried = CompletableFuture.supplyAsync(
                    () -> stub(channel).modelInfer(late().overGrpc()), InstalledServer.BLOCKING);
            Eventually.holds("refused", TIMEOUT_SECONDS, () -> rejected(server) > 0);
            GatedPlugin.open(gate);

            assertThat(retried.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).getId()).isEqualTo("late");
            assertThat(first.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).statusCode())
                    .isEqualTo(200);
            channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        }
    }

    /** Holds a request in execution and a full queue, and sends one more over each protocol. */
    private void refuses(String text, String configuration, String... flags) throws Exception {
        try (InstalledServer server = serve(configuration, flags)) {
            CompletableFuture<HttpResponse<String>> first = infer(server, "first");
            Eventually.holds("held", TIMEOUT_SECONDS, () -> GatedPlugin.isWaitedAt(gate));
            CompletableFuture<HttpResponse<String>> second = first;
            if (!configuration.isEmpty()) {
                second = infer(server, "second");
                Eventually.holds(
                        "queued",
                        TIMEOUT_SECONDS,
                        () -> metric(server, "nv_inference_pending_request_count{model=\"gated\",version=\"1\"}") == 1);
            }

            for (String method : List.of("infer", "generate", "generate_stream")) {
                String inputs = method.equals("infer") ? json("late") : "{\"id\":\"late\",\"INPUT0\":[1,2]}";
                HttpResponse<String> overHttp = server.post("/v2/models/gated/" + method, inputs);
                assertThat(overHttp.statusCode()).as(method).isEqualTo(503);
                assertThat(overHttp.headers().allValues("Retry-After"))
                        .as(method)
                        .containsExactly("1");
                assertThat(overHttp.body()).as(method).contains("{\"error\":\"" + text + "\"}");
            }
            ManagedChannel channel = channel(server);
            StatusRuntimeException overGrpc = catchThrowableOfType(
                    StatusRuntimeException.class, () -> stub(channel).modelInfer(late().overGrpc()));
            assertThat(overGrpc.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
            assertThat(overGrpc.getStatus().getDescription()).isEqualTo(text);
            assertThat(overGrpc.getTrailers().getAll(PUSHBACK)).containsExactly("1000");
            channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
            assertThat(rejected(server)).isEqualTo(4);

            GatedPlugin.open(gate);
            assertThat(first.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).statusCode())
                    .isEqualTo(200);
            assertThat(second.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).statusCode())
                    .isEqualTo(200);
            assertThat(server.post("/v2/models/gated/infer", json("late")).statusCode())
                    .as("capacity available again")
                    .isEqualTo(200);
        }
    }

    private InstalledServer serve(String configuration, String... flags) throws IOException {
        models = new Repository(directory.resolve("models")).model("gated", GatedPlugin.model() + configuration);
        gate = GatedPlugin.close(models, "gated", "execute");
        String[] all = Arrays.copyOf(flags, flags.length + 1);
        all[flags.length] = "--backend-directory=" + GatedPlugin.pack(directory.resolve("plugins"));
        return InstalledServer.serve(models.directory(), all);
    }

    private static CompletableFuture<HttpResponse<String>> infer(InstalledServer server, String id) {
        return CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return server.post("/v2/models/gated/infer", json(id));
                    } catch (IOException e) {
                        throw new UncheckedIOException(e);
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                },
                InstalledServer.BLOCKING);
    }

    private static String json(String id) {
        return "{\"id\":\"" + id
                + "\",\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1,2]}]}";
    }

    private static ClientRequest late() {
        return ClientRequest.of("gated").withId("late").input("INPUT0", "FP32", TensorBytes.floats(1, 2), 1, 2);
    }

    private static ManagedChannel channel(InstalledServer server) {
        return Grpc.newChannelBuilder(server.address("gRPC"), InsecureChannelCredentials.create())
                .build();
    }

    /** A client that would try five times within a moment. */
    private static ManagedChannel retrying(InstalledServer server) {
        Map<String, Object> policy = Map.of(
                "maxAttempts",
                5.0,
                "initialBackoff",
                "0.001s",
                "maxBackoff",
                "0.001s",
                "backoffMultiplier",
                1.0,
                "retryableStatusCodes",
                List.of("UNAVAILABLE"));
        Map<String, Object> method = Map.of("name", List.of(Map.of()), "retryPolicy", policy);
        return Grpc.newChannelBuilder(server.address("gRPC"), InsecureChannelCredentials.create())
                .defaultServiceConfig(Map.of("methodConfig", List.of(method)))
                .enableRetry()
                .build();
    }

    private static GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub stub(ManagedChannel channel) {
        return GRPCInferenceServiceGrpc.newBlockingStub(channel).withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    private static double rejected(InstalledServer server) {
        return metric(server, "nv_inference_request_failure{model=\"gated\",reason=\"REJECTED\",version=\"1\"}");
    }

    private static double metric(InstalledServer server, String series) {
        try {
            String text = server.metrics("GET", "/metrics").body();
            return text.lines()
                    .filter(line -> line.startsWith(series + " "))
                    .mapToDouble(line -> Double.parseDouble(line.substring(series.length() + 1)))
                    .findFirst()
                    .orElseThrow(() -> new AssertionError("no " + series + " in " + text));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
