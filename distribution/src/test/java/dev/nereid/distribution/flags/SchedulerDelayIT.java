package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestPaths;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferResponse;
import inference.ModelStatistics;
import inference.ModelStatisticsRequest;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The installed server with the variable that delays dynamic batchers. */
@Tag("slow")
final class SchedulerDelayIT {
    private static final String REQUEST =
            "{\"inputs\": [{\"name\": \"INPUT0\", \"datatype\": \"FP32\", \"shape\": [1, 2], \"data\": [1, 2]}]}";
    private static final int SECONDS = 120;

    @TempDir
    private Path directory;

    @Test
    void holdsADynamicBatcherOnceUntilSoManyRequestsWait() throws Exception {
        try (InstalledServer server = serve("3")) {
            assertThat(server.errSoFar())
                    .containsPattern(
                            "WARN.*TRITONSERVER_DELAY_SCHEDULER=3: models with dynamic batching or sequences execute"
                                    + " nothing until 3 requests wait for them, once; for tests only");
            ManagedChannel channel = Grpc.newChannelBuilder(server.address("gRPC"), InsecureChannelCredentials.create())
                    .build();
            try {
                assertThat(server.post("/v2/models/single/infer", REQUEST).statusCode())
                        .as("without dynamic batching")
                        .isEqualTo(200);
                List<Future<?>> responses = new ArrayList<>();
                responses.add(post(server));
                responses.add(grpc(channel));
                Eventually.holds("queued", SECONDS, () -> pending(server));
                assertThat(responses).noneMatch(Future::isDone);

                responses.add(post(server));
                for (Future<?> response : responses) {
                    response.get(SECONDS, TimeUnit.SECONDS);
                }
                grpc(channel).get(SECONDS, TimeUnit.SECONDS);

                ModelStatistics statistics = GRPCInferenceServiceGrpc.newBlockingStub(channel)
                        .modelStatistics(ModelStatisticsRequest.newBuilder()
                                .setName("batched")
                                .build())
                        .getModelStats(0);
                assertThat(statistics.getBatchStatsList())
                        .extracting(batch -> batch.getBatchSize() + " x "
                                + batch.getComputeInfer().getCount())
                        .containsExactlyInAnyOrder("3 x 1", "1 x 1");
            } finally {
                channel.shutdownNow().awaitTermination(SECONDS, TimeUnit.SECONDS);
            }
        }
    }

    @Test
    void holdsSequencesUntilSoManyRequestsWait() throws Exception {
        Path models = new Repository(directory.resolve("models"))
                .copyOf(TestPaths.checkout().resolve("examples/plugin-models/sequence"))
                .directory();
        try (InstalledServer server = InstalledServer.serve(
                Map.of(DelayVariables.VARIABLE, "2"),
                models,
                "--backend-directory=" + TestPaths.checkout().resolve("examples/plugins"))) {
            CompletableFuture<HttpResponse<String>> first = start(server, 1);
            Eventually.holds(
                    "queued",
                    SECONDS,
                    () -> metrics(server)
                            .contains("nv_inference_pending_request_count{model=\"sequence\",version=\"1\"} 1\n"));
            assertThat(first).isNotDone();
            assertThat(start(server, 2).get(SECONDS, TimeUnit.SECONDS).statusCode())
                    .isEqualTo(200);
            assertThat(first.get(SECONDS, TimeUnit.SECONDS).statusCode()).isEqualTo(200);
        }
    }

    private static CompletableFuture<HttpResponse<String>> start(InstalledServer server, int id) {
        String body = "{\"parameters\":{\"sequence_id\":" + id + ",\"sequence_start\":true},\"inputs\":[{\"name\":"
                + "\"INPUT\",\"datatype\":\"INT32\",\"shape\":[1,1],\"data\":[1]}]}";
        return CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return server.post("/v2/models/sequence/infer", body);
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                },
                InstalledServer.BLOCKING);
    }

    @Test
    void completesHeldRequestsBeforeItExits() throws Exception {
        try (InstalledServer server = serve("2")) {
            CompletableFuture<HttpResponse<String>> held = post(server);
            Eventually.holds("queued", SECONDS, () -> metrics(server).contains(pending(1)));

            server.interrupt();

            assertThat(held.get(SECONDS, TimeUnit.SECONDS).body()).contains("[1.0,2.0]");
            assertThat(server.awaitEnd().status()).isZero();
        }
    }

    @Test
    void namesAValueThatIsNoNumber() throws Exception {
        InstalledServer.Result result =
                InstalledServer.run(Map.of(DelayVariables.VARIABLE, "many"), "serve", "--model-repository=" + models());

        assertThat(result.status()).isNotZero();
        assertThat(result.err())
                .contains(
                        "TRITONSERVER_DELAY_SCHEDULER: 'many' (expected: a number of requests, from 0 to 2147483647)");
    }

    private InstalledServer serve(String requests) throws Exception {
        return InstalledServer.serve(
                Map.of(DelayVariables.VARIABLE, requests),
                models(),
                "--exit-timeout-secs=600", // shutdown does not wait for it
                "--backend-directory=" + GatedPlugin.pack(directory.resolve("plugins")));
    }

    private Path models() {
        return new Repository(directory.resolve("models"))
                .model("batched", GatedPlugin.model() + "dynamic_batching { }\n")
                .model("single", GatedPlugin.model())
                .directory();
    }

    private static CompletableFuture<HttpResponse<String>> post(InstalledServer server) {
        return CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return server.post("/v2/models/batched/infer", REQUEST);
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                },
                InstalledServer.BLOCKING);
    }

    private static Future<ModelInferResponse> grpc(ManagedChannel channel) {
        return CompletableFuture.supplyAsync(
                () -> GRPCInferenceServiceGrpc.newBlockingStub(channel)
                        .modelInfer(ClientRequest.of("batched")
                                .input("INPUT0", "FP32", TensorBytes.floats(1, 2), 1, 2)
                                .overGrpc()),
                InstalledServer.BLOCKING);
    }

    private static boolean pending(InstalledServer server) {
        return metrics(server).contains(pending(2));
    }

    private static String pending(int requests) {
        return "nv_inference_pending_request_count{model=\"batched\",version=\"1\"} " + requests + "\n";
    }

    private static String metrics(InstalledServer server) {
        try {
            return server.metrics("GET", "/metrics").body();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
