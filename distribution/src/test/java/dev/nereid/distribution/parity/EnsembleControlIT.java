package dev.nereid.distribution.parity;

import static dev.nereid.distribution.testing.TensorBytes.floats;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.ScriptedModels;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelConfigRequest;
import inference.ModelMetadataRequest;
import inference.ModelMetadataResponse;
import inference.ModelReadyRequest;
import inference.RepositoryIndexRequest;
import inference.RepositoryModelLoadRequest;
import inference.RepositoryModelUnloadRequest;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests what clients see of ensembles, and how they load, unload and reload them, over both protocols. */
@Timeout(120)
final class EnsembleControlIT {
    private static final int RELOADS = 12;
    private static final int REQUESTS = 400;
    private static final List<Protocol> CLIENTS = List.of(
            Protocol.HTTP_JSON,
            Protocol.GRPC,
            Protocol.HTTP_BINARY,
            Protocol.GRPC_STREAM,
            Protocol.HTTP_BINARY,
            Protocol.GRPC);

    @TempDir
    private static Path directory;

    private static EnsembleServer server;
    private static ManagedChannel channel;

    @BeforeAll
    static void start() throws IOException, InterruptedException {
        server = new EnsembleServer(directory);
        channel = server.server().grpc();
    }

    @AfterAll
    static void stop() throws InterruptedException {
        channel.shutdownNow().awaitTermination(EnsembleServer.SECONDS, TimeUnit.SECONDS);
        server.close();
    }

    private static GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub stub() {
        return GRPCInferenceServiceGrpc.newBlockingStub(channel)
                .withDeadlineAfter(EnsembleServer.SECONDS, TimeUnit.SECONDS);
    }

    private static RawHttpResponse get(String path) throws IOException {
        try (HttpConnection http = server.server().http()) {
            return http.exchange(HttpRequests.get(path));
        }
    }

    private static RawHttpResponse post(String path, String body) throws IOException {
        try (HttpConnection http = server.server().http()) {
            return http.exchange(HttpRequests.post(path, body.getBytes(StandardCharsets.UTF_8)));
        }
    }

    private static Scenario request(String ensemble, float value) {
        return Scenario.of(ensemble, ensemble).in("INPUT0", "FP32", floats(value), 1, 1);
    }

    private static float value(Outcome outcome) {
        assertThat(outcome).isInstanceOf(Outcome.Completed.class);
        return TensorBytes.toFloats(((Outcome.Completed) outcome)
                .responses()
                .getFirst()
                .outputs()
                .getFirst()
                .data()
                .toByteArray())[0];
    }

    @Test
    void tellsItsMetadata() throws Exception {
        Struct http = get("/v2/models/fork").json();
        ModelMetadataResponse grpc = stub().modelMetadata(
                        ModelMetadataRequest.newBuilder().setName("fork").build());

        assertThat(http.getFieldsOrThrow("platform").getStringValue())
                .isEqualTo("ensemble")
                .isEqualTo(grpc.getPlatform());
        assertThat(names(http, "inputs"))
                .containsExactly("INPUT0")
                .isEqualTo(grpc.getInputsList().stream()
                        .map(ModelMetadataResponse.TensorMetadata::getName)
                        .toList());
        assertThat(names(http, "outputs"))
                .containsExactly("LEFT", "RIGHT", "LEFT_TIMES", "RIGHT_TIMES")
                .isEqualTo(grpc.getOutputsList().stream()
                        .map(ModelMetadataResponse.TensorMetadata::getName)
                        .toList());
        assertThat(grpc.getOutputs(0).getShapeList()).containsExactly(-1L, -1L);
    }

    private static List<String> names(Struct metadata, String kind) {
        return metadata.getFieldsOrThrow(kind).getListValue().getValuesList().stream()
                .map(tensor -> tensor.getStructValue().getFieldsOrThrow("name").getStringValue())
                .toList();
    }

    @Test
    void tellsItsConfiguration() throws Exception {
        List<Value> http = get("/v2/models/fork/config")
                .json()
                .getFieldsOrThrow("ensemble_scheduling")
                .getStructValue()
                .getFieldsOrThrow("step")
                .getListValue()
                .getValuesList();
        var grpc = stub().modelConfig(
                        ModelConfigRequest.newBuilder().setName("fork").build())
                .getConfig();

        assertThat(http)
                .extracting(step ->
                        step.getStructValue().getFieldsOrThrow("model_name").getStringValue())
                .containsExactly("first", "left", "right");
        assertThat(grpc.getEnsembleScheduling().getStepList())
                .extracting(step -> step.getModelName())
                .containsExactly("first", "left", "right");
        assertThat(grpc.getEnsembleScheduling().getStep(1).getOutputMapMap())
                .containsEntry("OUTPUT0", "LEFT")
                .containsEntry("TIMES", "LEFT_TIMES");
    }

    @Test
    void isListedBesideItsModels() throws Exception {
        String http = post("/v2/repository/index", "").text();
        var grpc = stub().repositoryIndex(RepositoryIndexRequest.getDefaultInstance());

        for (String model : List.of("fork", "first", "left", "right")) {
            assertThat(http).contains("{\"name\":\"" + model + "\",\"version\":\"1\",\"state\":\"READY\"");
            assertThat(grpc.getModelsList())
                    .filteredOn(entry -> entry.getName().equals(model))
                    .extracting(entry -> entry.getState())
                    .containsExactly("READY");
            assertThat(isReadyOverHttp(model)).isTrue();
            assertThat(isReadyOverGrpc(model)).isTrue();
        }
    }

    private static boolean isReadyOverHttp(String model) throws IOException {
        return get("/v2/models/" + model + "/ready").status() == 200;
    }

    private static boolean isReadyOverGrpc(String model) {
        return stub().modelReady(ModelReadyRequest.newBuilder().setName(model).build())
                .getReady();
    }

    @Test
    void isUnloadedWithAStepAndLoadedWithItsSteps() throws Exception {
        assertThat(post("/v2/repository/models/cut/unload", "").status()).isEqualTo(200);
        requireUnloaded();
        RawHttpResponse loaded = post("/v2/repository/models/cutting/load", "");
        assertThat(loaded.status()).as(loaded::text).isEqualTo(200);
        requireLoaded();

        var _ = stub().repositoryModelUnload(RepositoryModelUnloadRequest.newBuilder()
                .setModelName("cut")
                .build());
        requireUnloaded();
        var _ = stub().repositoryModelLoad(RepositoryModelLoadRequest.newBuilder()
                .setModelName("cutting")
                .build());
        requireLoaded();
    }

    private static void requireUnloaded() throws IOException, InterruptedException {
        assertThat(isReadyOverHttp("cutting")).isFalse();
        assertThat(isReadyOverGrpc("cutting")).isFalse();
        assertThat(isReadyOverGrpc("first"))
                .as("the other step, which was not unloaded")
                .isTrue();
        for (Protocol protocol : Protocol.values()) {
            assertThat(server.run(protocol, request("cutting", 1)))
                    .isInstanceOfSatisfying(
                            Outcome.Refused.class,
                            refused -> assertThat(refused.text())
                                    .isEqualTo("Request for unknown model: 'cutting' has no available versions"));
        }
    }

    private static void requireLoaded() throws IOException, InterruptedException {
        assertThat(isReadyOverHttp("cut")).isTrue();
        assertThat(isReadyOverGrpc("cutting")).isTrue();
        for (Protocol protocol : Protocol.values()) {
            assertThat(value(server.run(protocol, request("cutting", 1)))).isEqualTo(5);
        }
    }

    /** Clients of each protocol send requests without a pause while one step is loaded again and again. */
    @Test
    void noRequestFailsWhileAStepIsReloaded() throws Exception {
        AtomicLong responses = new AtomicLong();
        AtomicLong reloads = new AtomicLong();
        try (ExecutorService clients = Executors.newThreadPerTaskExecutor(
                Thread.ofPlatform().name("client/", 0).factory())) {
            List<Future<Void>> all = new ArrayList<>();
            for (Protocol protocol : CLIENTS) {
                all.add(clients.submit(client(protocol, responses, reloads)));
            }
            for (int i = 0; i < RELOADS; i++) {
                reload(i % 2 == 0 ? 20 : 10, i % 4 < 2);
                reloads.incrementAndGet();
            }
            for (Future<Void> client : all) {
                client.get(EnsembleServer.SECONDS, TimeUnit.SECONDS);
            }
        }
        assertThat(responses.get()).isGreaterThanOrEqualTo(REQUESTS);
        server.awaitCompletion();
    }

    /** Returns a client that sends requests until the reloads are done and all clients have had enough responses. */
    private static Callable<Void> client(Protocol protocol, AtomicLong responses, AtomicLong reloads) {
        return () -> {
            ScenarioClient client = server.connect(protocol);
            try {
                while (reloads.get() < RELOADS || responses.get() < REQUESTS) {
                    assertThat(value(client.run(request("swapping", 1))))
                            .as("%s", protocol)
                            .isIn(12f, 22f);
                    responses.incrementAndGet();
                }
            } finally {
                client.end();
            }
            return null;
        };
    }

    private static void reload(int add, boolean overHttp) throws IOException {
        String config = config(add, "-1");
        if (overHttp) {
            RawHttpResponse response = post(
                    "/v2/repository/models/swapped/load",
                    "{\"parameters\":{\"config\":\"" + config.replace("\"", "\\\"") + "\"}}");
            assertThat(response.status()).as(response::text).isEqualTo(200);
            return;
        }
        var _ = stub().repositoryModelLoad(load(config));
    }

    private static RepositoryModelLoadRequest load(String config) {
        return RepositoryModelLoadRequest.newBuilder()
                .setModelName("swapped")
                .putParameters(
                        "config",
                        inference.ModelRepositoryParameter.newBuilder()
                                .setStringParam(config)
                                .build())
                .build();
    }

    private static String config(int add, String dims) {
        String tensor = "[{\"name\":\"%s\",\"data_type\":\"TYPE_FP32\",\"dims\":[" + dims + "]}]";
        return "{\"backend\":\"scripted\",\"max_batch_size\":8,\"input\":" + tensor.formatted("INPUT0") + ",\"output\":"
                + tensor.formatted("OUTPUT0") + ",\"parameters\":{\"add\":{\"string_value\":\"" + add + "\"}}}";
    }

    @Test
    void aReloadThatWouldBreakItIsRefused() throws Exception {
        assertThatExceptionOfType(StatusRuntimeException.class)
                .isThrownBy(() -> stub().repositoryModelLoad(load(config(1, "-1, 3"))))
                .withMessageContaining("swapping");

        assertThat(value(server.run(Protocol.GRPC, request("swapping", 1)))).isIn(12f, 22f);
        assertThat(isReadyOverHttp("swapped")).isTrue();
    }

    @Test
    void isLoadedOnDemandWithItsSteps(@TempDir Path other) throws Exception {
        ScriptedModels models = new ScriptedModels(other).withChain().chain("reverse", "third", "first");
        try (TestServer onDemand = TestServer.open(NereidServer.start(
                TestServer.of(models.repository()).withPlugins(models.plugins()).with(o -> o.onDemand())))) {
            assertThat(onDemand.server().demand().orElseThrow().loads()).isZero();
            ScenarioClient http = new HttpScenarios(onDemand.http(), true);
            ScenarioClient grpc = new GrpcScenarios(onDemand.grpc(), false);

            assertThat(value(http.run(request("reverse", 1)))).isEqualTo(102);
            long loads = onDemand.server().demand().orElseThrow().loads();
            assertThat(value(grpc.run(request("chain", 1)))).isEqualTo(112);

            assertThat(loads).isEqualTo(3);
            assertThat(onDemand.server().demand().orElseThrow().loads()).isEqualTo(5);
            http.end();
            grpc.end();
        }
    }
}
