package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.api.ModelRef;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferRequest.InferInputTensor;
import inference.ModelInferRequest.InferRequestedOutputTensor;
import inference.ModelInferResponse;
import inference.SystemSharedMemoryRegisterRequest;
import inference.SystemSharedMemoryStatusRequest;
import inference.SystemSharedMemoryUnregisterRequest;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Regions of shared memory that clients unregister while requests use them, over both protocols. */
final class SharedRegionIT {
    private static final Path SEGMENTS = Path.of("/dev/shm");
    private static final String KEY = "nereid-region-" + ProcessHandle.current().pid();
    private static final int SECONDS = 60;
    private static final int IN = 8;

    enum Wire {
        HTTP,
        GRPC
    }

    @TempDir
    private Path directory;

    private Repository models;

    @RegisterExtension
    private final ServerExtension server = new ServerExtension(this::options);

    private ServerOptions options() throws IOException {
        assumeTrue(Files.isWritable(SEGMENTS), SEGMENTS + " is not there");
        String bounded = GatedPlugin.model() + "dynamic_batching { default_queue_policy { max_queue_size: 1 } }\n";
        models = new Repository(directory.resolve("models"))
                .model("one", bounded)
                .model("two", GatedPlugin.model());
        Files.write(SEGMENTS.resolve(KEY), bytes(1, 2, 0, 0, 0, 0));
        return TestServer.of(models)
                .withPlugins(GatedPlugin.pack(directory.resolve("plugins")))
                .with(o -> o.clientSharedMemory = true);
    }

    @AfterEach
    void deleteRegion() throws IOException {
        Files.deleteIfExists(SEGMENTS.resolve(KEY));
    }

    @ParameterizedTest
    @EnumSource
    void staysListedUntilTheRequestsEndThatWereAcceptedBefore(Wire wire) throws Exception {
        register("in");
        register("out");
        Path gateOfOne = GatedPlugin.close(models, "one", "execute");
        CompletableFuture<Void> before = infer(wire, "one", "out", IN);
        Eventually.holds("executing", SECONDS, () -> GatedPlugin.isWaitedAt(gateOfOne));

        post("/v2/systemsharedmemory/unregister", "");
        stub().systemSharedMemoryUnregister(SystemSharedMemoryUnregisterRequest.newBuilder()
                .setName("in")
                .build());

        assertThat(regions()).containsOnlyKeys("in", "out");
        RawHttpResponse taken =
                post("/v2/systemsharedmemory/region/in/register", "{\"key\":\"/other\",\"byte_size\":8}");
        assertThat(taken.status()).isEqualTo(400);
        assertThat(taken.error()).isEqualTo("shared memory region 'in' already in manager");
        Path gateOfTwo = GatedPlugin.close(models, "two", "execute");
        CompletableFuture<Void> later = infer(wire, "two", "out", 2 * IN);
        Eventually.holds("executing", SECONDS, () -> GatedPlugin.isWaitedAt(gateOfTwo));

        GatedPlugin.open(gateOfOne);
        before.get(SECONDS, TimeUnit.SECONDS);

        assertThat(regions()).as("though a later request uses them").isEmpty();
        assertThat(refusal(infer(wire, "two", "out", IN))).contains("Unable to find shared memory region: 'in'");
        register("in");
        GatedPlugin.open(gateOfTwo);
        later.get(SECONDS, TimeUnit.SECONDS);
        assertThat(floats()).containsExactly(1, 2, 1, 2, 1, 2);
        assertThat(regions()).containsOnlyKeys("in");
    }

    @ParameterizedTest
    @EnumSource
    void goesWithRequestsThatAreRefusedByTheQueueOrFail(Wire wire) throws Exception {
        Path gate = GatedPlugin.close(models, "one", "execute");
        register("in");
        register("out");
        CompletableFuture<Void> executing = infer(wire, "one", "out", IN);
        Eventually.holds("executing", SECONDS, () -> GatedPlugin.isWaitedAt(gate));
        register("other");
        CompletableFuture<Void> waiting = infer(wire, "one", "other", IN);
        Eventually.holds("waiting", SECONDS, () -> waits("one"));
        register("full");
        assertThat(refusal(infer(wire, "one", "full", IN))).contains("Exceeds maximum queue size");

        post("/v2/systemsharedmemory/unregister", "");
        assertThat(regions()).containsOnlyKeys("in", "other", "out");
        Files.createFile(gate.resolveSibling("execute.fails"));
        GatedPlugin.open(gate);

        assertThat(refusal(executing)).contains("execution fails as configured");
        assertThat(refusal(waiting)).contains("execution fails as configured");
        assertThat(regions()).isEmpty();
    }

    @Test
    void goesWithRequestsWhoseClientsLeave() throws Exception {
        Path gate = GatedPlugin.close(models, "one", "execute");
        register("in");
        register("out");
        CompletableFuture<Void> executing = infer(Wire.HTTP, "one", "out", IN);
        Eventually.holds("executing", SECONDS, () -> GatedPlugin.isWaitedAt(gate));
        register("left");
        ClientCall<ModelInferRequest, ModelInferResponse> call =
                server.channel().newCall(GRPCInferenceServiceGrpc.getModelInferMethod(), CallOptions.DEFAULT);
        call.start(new ClientCall.Listener<>() {}, new Metadata());
        call.sendMessage(overGrpc("one", "left", IN));
        call.halfClose();
        Eventually.holds("waiting", SECONDS, () -> waits("one"));
        post("/v2/systemsharedmemory/unregister", "");
        assertThat(regions()).containsOnlyKeys("in", "left", "out");

        call.cancel("leaving", null);

        Eventually.holds("unregistered", SECONDS, () -> !regions().containsKey("left"));
        assertThat(regions()).containsOnlyKeys("in", "out");
        GatedPlugin.open(gate);
        executing.get(SECONDS, TimeUnit.SECONDS);
        assertThat(regions()).isEmpty();
    }

    @Test
    void reportsThatMemoryIsNotSharedBeforeItLooksAtTheRegistration() throws Exception {
        try (TestServer closed = TestServer.open(
                        NereidServer.start(TestServer.of(models).withPlugins(directory.resolve("plugins"))));
                HttpConnection http = closed.http()) {
            for (String kind : List.of("system", "cuda")) {
                for (String region : List.of("", "/region/x")) {
                    RawHttpResponse response = http.exchange(HttpRequests.post(
                            "/v2/" + kind + "sharedmemory" + region + "/register", new byte[] {'{', '}'}));
                    assertThat(response.status()).isEqualTo(501);
                    assertThat(response.error())
                            .isEqualTo("Client shared memory is disabled. Start the server with"
                                    + " '--allow-client-shm=true' to enable.");
                }
            }
        }
    }

    /** Sends a request with its input in the region {@code in}, and the output in another. */
    private CompletableFuture<Void> infer(Wire wire, String model, String out, int offset) {
        return CompletableFuture.runAsync(
                () -> {
                    if (wire == Wire.GRPC) {
                        stub().modelInfer(overGrpc(model, out, offset));
                        return;
                    }
                    RawHttpResponse response = post("/v2/models/" + model + "/infer", """
                            {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "parameters":
                              {"shared_memory_region": "in", "shared_memory_byte_size": 8}}],
                             "outputs": [{"name": "OUTPUT0", "parameters":
                              {"shared_memory_region": "%s", "shared_memory_offset": %d, "shared_memory_byte_size": 8}}]}
                            """.formatted(out, offset));
                    if (response.status() != 200) {
                        throw new IllegalStateException(response.error());
                    }
                },
                InstalledServer.BLOCKING);
    }

    private static ModelInferRequest overGrpc(String model, String out, int offset) {
        return ModelInferRequest.newBuilder()
                .setModelName(model)
                .addInputs(InferInputTensor.newBuilder()
                        .setName("INPUT0")
                        .setDatatype("FP32")
                        .addShape(1)
                        .addShape(2)
                        .putAllParameters(place("in", 0)))
                .addOutputs(InferRequestedOutputTensor.newBuilder()
                        .setName("OUTPUT0")
                        .putAllParameters(place(out, offset)))
                .build();
    }

    private static Map<String, InferParameter> place(String region, int offset) {
        return Map.of(
                "shared_memory_region",
                InferParameter.newBuilder().setStringParam(region).build(),
                "shared_memory_offset",
                InferParameter.newBuilder().setInt64Param(offset).build(),
                "shared_memory_byte_size",
                InferParameter.newBuilder().setInt64Param(IN).build());
    }

    /** Waits for a request that fails, and returns its error. */
    private static String refusal(CompletableFuture<Void> request) throws Exception {
        try {
            request.get(SECONDS, TimeUnit.SECONDS);
            throw new AssertionError("completed (expected: refused)");
        } catch (ExecutionException e) {
            return String.valueOf(e.getCause().getMessage());
        }
    }

    private void register(String region) {
        stub().systemSharedMemoryRegister(SystemSharedMemoryRegisterRequest.newBuilder()
                .setName(region)
                .setKey(KEY)
                .setByteSize(3 * IN)
                .build());
    }

    private Map<String, ?> regions() {
        return stub().systemSharedMemoryStatus(SystemSharedMemoryStatusRequest.getDefaultInstance())
                .getRegionsMap();
    }

    private GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub stub() {
        return GRPCInferenceServiceGrpc.newBlockingStub(server.channel()).withDeadlineAfter(SECONDS, TimeUnit.SECONDS);
    }

    private RawHttpResponse post(String path, String body) {
        try (HttpConnection http = server.http()) {
            return http.exchange(HttpRequests.post(path, body.getBytes(StandardCharsets.UTF_8)));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private boolean waits(String model) {
        return server.server()
                        .models()
                        .statistics(ModelRef.latest(model))
                        .getFirst()
                        .metrics()
                        .pending()
                == 1;
    }

    private static byte[] bytes(float... values) {
        return TensorBytes.floats(values);
    }

    private static float[] floats() throws IOException {
        ByteBuffer bytes =
                ByteBuffer.wrap(Files.readAllBytes(SEGMENTS.resolve(KEY))).order(ByteOrder.LITTLE_ENDIAN);
        float[] values = new float[bytes.remaining() / Float.BYTES];
        bytes.asFloatBuffer().get(values);
        return values;
    }
}
