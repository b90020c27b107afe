package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferResponse;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/**
 * Requests over HTTP and gRPC that wait for the load of their model. A model does not fit beside another one as long as it
 * was never loaded.
 */
@Timeout(120)
final class DemandIT {
    private static final long BUDGET = 525_000;

    @TempDir
    private Path directory;

    private Repository models;

    @RegisterExtension
    private final ServerExtension server = new ServerExtension(this::options);

    private ServerOptions options() {
        models = new Repository(directory.resolve("models"))
                .model("first", GatedPlugin.model())
                .model("second", GatedPlugin.model());
        return TestServer.of(models)
                .withPlugins(GatedPlugin.pack(directory.resolve("plugins")))
                .with(o -> {
                    o.onDemand();
                    o.memoryBudget = BUDGET;
                    o.maxWait = Duration.ofSeconds(10);
                });
    }

    @Test
    void serveAModelThatWasEvicted() throws Exception {
        for (int i = 0; i < 5; i++) {
            for (String model : new String[] {"first", "second"}) {
                try (HttpConnection http = server.http()) {
                    assertThat(http.exchange(request(model).overHttp()).status())
                            .isEqualTo(200);
                    assertThat(infer(model).getModelName()).isEqualTo(model);
                    RawHttpResponse generated = http.exchange(HttpRequests.post(
                            "/v2/models/" + model + "/generate",
                            "{\"INPUT0\":[1.5]}".getBytes(StandardCharsets.UTF_8)));
                    assertThat(generated.status()).as(generated::text).isEqualTo(200);
                    assertThat(generated.text()).contains("1.5");
                }
            }
        }
        // From the second load on it is known that the first model takes little.
        assertThat(server.server().demand().orElseThrow().evictions()).isEqualTo(1);
        assertThat(server.server().demand().orElseThrow().loads()).isEqualTo(3);
    }

    @Test
    void generateWaitsForTheLoad() throws Exception {
        Path gate = GatedPlugin.close(models, "first", "load");
        try (HttpConnection http = server.http();
                HttpConnection other = server.http()) {
            byte[] request = HttpRequests.post(
                    "/v2/models/first/generate_stream", "{\"INPUT0\":[2.5]}".getBytes(StandardCharsets.UTF_8));
            http.send(request, 0, request.length);
            Eventually.holds("loading", 30, () -> GatedPlugin.isWaitedAt(gate));
            assertThat(waiting()).isEqualTo(1);
            assertThat(other.exchange(HttpRequests.get("/v2/models/first/ready"))
                            .status())
                    .as("the event loop is free, and the model ready")
                    .isEqualTo(200);
            assertThat(other.exchange(HttpRequests.get("/v2/models/first")).text())
                    .contains("INPUT0");
            assertThat(other.exchange(HttpRequests.get("/v2/models/first/config"))
                            .text())
                    .contains("gated");
            assertThat(other.exchange(HttpRequests.get("/v2/models/first/stats"))
                            .status())
                    .isEqualTo(200);

            GatedPlugin.open(gate);

            assertThat(http.read().text()).contains("2.5");
        }
    }

    @Test
    void refuseRequestsThatHaveWaitedTooLong() throws Exception {
        Path gate = block();
        try (HttpConnection blocked = begin(request("first"));
                HttpConnection http = server.http()) {
            Eventually.holds("executing", 30, () -> GatedPlugin.isWaitedAt(gate));

            RawHttpResponse overHttp = http.exchange(request("second").overHttp());
            StatusRuntimeException overGrpc = catchThrowableOfType(StatusRuntimeException.class, () -> infer("second"));

            assertThat(overHttp.status()).isEqualTo(503);
            assertThat(overHttp.headers()).containsEntry("retry-after", "1");
            assertThat(overHttp.error())
                    .startsWith("model 'second' was not loaded within ")
                    .contains("a larger --model-memory-budget");
            assertThat(overGrpc.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
            assertThat(overGrpc.getStatus().getDescription()).startsWith("model 'second' was not loaded within ");
            GatedPlugin.open(gate);
            assertThat(blocked.read().status()).isEqualTo(200);
        }
    }

    @Test
    void forgetRequestsOfClientsThatDisconnect() throws Exception {
        Path gate = block();
        try (HttpConnection blocked = begin(request("first"))) {
            Eventually.holds("executing", 30, () -> GatedPlugin.isWaitedAt(gate));
            long held = server.server().memory().bytesInUse();
            HttpConnection http = begin(request("second"));
            ManagedChannel other = server.grpc();
            CompletableFuture<ModelInferResponse> call =
                    CompletableFuture.supplyAsync(() -> infer(other, "second"), Thread::startVirtualThread);
            Eventually.holds("waiting", 30, () -> waiting() == 2);

            http.abandon();
            Eventually.holds("forgotten", 1, () -> waiting() == 1);
            other.shutdownNow();
            Eventually.holds("forgotten", 1, () -> waiting() == 0);

            Eventually.holds("freed", 1, () -> server.server().memory().bytesInUse() <= held);
            other.awaitTermination(10, TimeUnit.SECONDS);
            assertThat(call).failsWithin(Duration.ofSeconds(10));
            GatedPlugin.open(gate);
            assertThat(blocked.read().status()).isEqualTo(200);
            assertThat(server.server().demand().orElseThrow().loads()).isEqualTo(1);
        }
    }

    /** Keeps the first model in use. */
    private Path block() throws IOException {
        return GatedPlugin.close(models, "first", "execute");
    }

    private HttpConnection begin(ClientRequest request) throws IOException {
        HttpConnection http = server.http();
        http.send(request.overHttp(), 0, request.overHttp().length);
        return http;
    }

    private int waiting() {
        return server.server().demand().orElseThrow().waiting();
    }

    private ModelInferResponse infer(String model) {
        return infer(server.channel(), model);
    }

    private static ModelInferResponse infer(ManagedChannel channel, String model) {
        return GRPCInferenceServiceGrpc.newBlockingStub(channel)
                .withDeadlineAfter(60, TimeUnit.SECONDS)
                .modelInfer(request(model).overGrpc());
    }

    private static ClientRequest request(String model) {
        return ClientRequest.of(model).input("INPUT0", "FP32", TensorBytes.floats(1, 2), 1, 2);
    }
}
