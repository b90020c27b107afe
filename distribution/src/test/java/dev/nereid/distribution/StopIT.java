package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Shutdown of the installed server, as by Ctrl-C. */
@Tag("slow")
final class StopIT {
    private static final String REQUEST =
            "{\"inputs\": [{\"name\": \"INPUT0\", \"datatype\": \"FP32\", \"shape\": [1, 2], \"data\": [1, 2]}]}";
    private static final ModelInferRequest CALL = ModelInferRequest.newBuilder()
            .setModelName("gated")
            .addInputs(ModelInferRequest.InferInputTensor.newBuilder()
                    .setName("INPUT0")
                    .setDatatype("FP32")
                    .addShape(1)
                    .addShape(2))
            .addRawInputContents(ByteString.copyFrom(new byte[8]))
            .build();
    private static final int TIMEOUT_SECONDS = 120;

    @TempDir
    private Path directory;

    @Test
    void endsWithoutComplaint() throws IOException, InterruptedException {
        try (InstalledServer server = InstalledServer.serve(InstalledServer.MODELS)) {
            server.interrupt();

            InstalledServer.Result result = server.awaitEnd();
            assertThat(result.status()).isZero();
            assertThat(result.err().lines().filter(line -> !line.contains(" INFO ")))
                    .isEmpty();
        }
    }

    @Test
    void endsBySigintInTheBackgroundToo() throws IOException, InterruptedException {
        try (InstalledServer server = InstalledServer.serveInBackground(InstalledServer.MODELS)) {
            server.signal("HUP");
            assertThat(server.get("/v2/health/ready").statusCode())
                    .as("SIGHUP stays ignored")
                    .isEqualTo(200);

            server.interrupt();

            assertThat(server.awaitEnd().status()).isZero();
        }
    }

    @Test
    void completesPendingRequestsBeforeItExits() throws Exception {
        Repository models = new Repository(directory.resolve("models")).model("gated", GatedPlugin.model());
        Path gate = GatedPlugin.close(models, "gated", "execute");
        try (InstalledServer server = serve(models, "60")) {
            CompletableFuture<HttpResponse<String>> response = infer(server, gate);

            server.interrupt();
            Eventually.holds("refusal", TIMEOUT_SECONDS, () -> isRefused(server));
            Eventually.holds(
                    "line about what it waits for",
                    TIMEOUT_SECONDS,
                    () -> server.errSoFar()
                            .lines()
                            .anyMatch(line ->
                                    line.matches(".* INFO RunningServer - requests=\\{gated/1=1\\} connections=\\d+"
                                            + " secondsLeft=\\d+ waiting for requests")));
            GatedPlugin.open(gate);

            assertThat(response.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).body()).contains("[1.0,2.0]");
            assertThat(server.awaitEnd().status()).isZero();
        }
    }

    @Test
    void reportsThatItExitsUntilItHas() throws Exception {
        Repository models = new Repository(directory.resolve("models")).model("gated", GatedPlugin.model());
        Path gate = GatedPlugin.close(models, "gated", "execute");
        try (InstalledServer server = serve(models, "60")) {
            CompletableFuture<HttpResponse<String>> response = infer(server, gate);

            server.interrupt();
            Eventually.holds("refusal", TIMEOUT_SECONDS, () -> isRefused(server));

            assertThat(server.metrics("GET", "/metrics").statusCode()).isEqualTo(200);
            GatedPlugin.open(gate);
            assertThat(response.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).body()).contains("[1.0,2.0]");
            assertThat(server.awaitEnd().status()).isZero();
        }
    }

    @Test
    void abandonsHttpRequestsThatTakeTooLong() throws Exception {
        Repository models = new Repository(directory.resolve("models")).model("gated", GatedPlugin.model());
        Path gate = GatedPlugin.close(models, "gated", "execute");
        try (InstalledServer server = serve(models, "1")) {
            CompletableFuture<HttpResponse<String>> response = infer(server, gate);

            server.interrupt();

            HttpResponse<String> refused = response.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            assertThat(refused.statusCode()).isEqualTo(503);
            assertThat(refused.body()).contains("Server is stopping, and could not wait for the end of the execution");
            InstalledServer.Result result = server.awaitEnd();
            assertThat(result.status()).isEqualTo(1);
            assertThat(result.err()).contains("nereid: Exit timeout expired. Exiting immediately.");
        }
    }

    @Test
    void abandonsGrpcCallsThatTakeTooLong() throws Exception {
        Repository models = new Repository(directory.resolve("models")).model("gated", GatedPlugin.model());
        Path gate = GatedPlugin.close(models, "gated", "execute");
        try (InstalledServer server = serve(models, "1")) {
            ManagedChannel channel = Grpc.newChannelBuilder(server.address("gRPC"), InsecureChannelCredentials.create())
                    .build();
            GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub stub =
                    GRPCInferenceServiceGrpc.newBlockingStub(channel);
            CompletableFuture<ModelInferResponse> executed =
                    CompletableFuture.supplyAsync(() -> stub.modelInfer(CALL), InstalledServer.BLOCKING);
            Eventually.holds("held call", TIMEOUT_SECONDS, () -> GatedPlugin.isWaitedAt(gate));
            CompletableFuture<ModelInferResponse> waiting =
                    CompletableFuture.supplyAsync(() -> stub.modelInfer(CALL), InstalledServer.BLOCKING);
            Eventually.holds("waiting call", TIMEOUT_SECONDS, () -> isWaitedFor(server));

            server.interrupt();

            assertReported(executed, "Server is stopping, and could not wait for the end of the execution");
            assertReported(
                    waiting, "Server is stopping, scheduler for model has stopped accepting new inference requests");
            assertThat(server.awaitEnd().status()).isEqualTo(1);
            channel.shutdownNow();
        }
    }

    private static boolean isWaitedFor(InstalledServer server) {
        try {
            return server.metrics("GET", "/metrics")
                    .body()
                    .contains("nv_inference_pending_request_count{model=\"gated\",version=\"1\"} 1");
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void assertReported(CompletableFuture<ModelInferResponse> response, String text) {
        assertThatThrownBy(() -> response.get(TIMEOUT_SECONDS, TimeUnit.SECONDS))
                .cause()
                .isInstanceOfSatisfying(StatusRuntimeException.class, error -> {
                    assertThat(error.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
                    assertThat(error.getStatus().getDescription()).contains(text);
                });
    }

    private InstalledServer serve(Repository models, String exitTimeoutSeconds) throws IOException {
        Path plugins = GatedPlugin.pack(directory.resolve("plugins"));
        return InstalledServer.serve(
                models.directory(), "--backend-directory=" + plugins, "--exit-timeout-secs=" + exitTimeoutSeconds);
    }

    /** Sends a request, and returns once it is being executed. */
    private static CompletableFuture<HttpResponse<String>> infer(InstalledServer server, Path gate) {
        CompletableFuture<HttpResponse<String>> response = CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return server.post("/v2/models/gated/infer", REQUEST);
                    } catch (IOException e) {
                        throw new UncheckedIOException(e);
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                },
                InstalledServer.BLOCKING);
        Eventually.holds("held request", TIMEOUT_SECONDS, () -> GatedPlugin.isWaitedAt(gate));
        return response;
    }

    /** Returns whether new connections are refused because the server exits. */
    private static boolean isRefused(InstalledServer server) {
        try {
            HttpResponse<String> response = server.get("/v2/health/ready");
            return response.statusCode() == 503 && response.body().contains("Server exiting");
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
