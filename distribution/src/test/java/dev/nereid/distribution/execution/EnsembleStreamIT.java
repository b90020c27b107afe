package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.nereid.api.ModelRef;
import dev.nereid.distribution.testing.CountingServer;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.FlowWatch;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.paced.PacedBackendProvider;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelStreamInferResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.netty.NettyChannelBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests ensembles with a decoupled step whose clients or later steps are slow. A step that minds the flow waits for them,
 * and loses nothing; one that does not fails its own request.
 */
@Timeout(180)
final class EnsembleStreamIT {
    private static final int HEEDLESS = 0;
    private static final int BY_ACTION = 1;
    private static final int BY_THREAD = 2;
    private static final int COUNT = 10_000;
    private static final int DIGITS = 8;
    private static final int WINDOW = 64 << 10;
    private static final long MIB = 1 << 20;
    private static final long SECONDS = 60;
    private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(300);
    private static final String INPUTS = """
            max_batch_size: 0
            input [ { name: "COUNT" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "MODE" data_type: TYPE_INT32 dims: [ 1 ] } ]
            output [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
            model_transaction_policy { decoupled: true }
            """;
    private static final String STEPS = """
            ensemble_scheduling { step [
              { model_name: "paced" model_version: -1 input_map { key: "COUNT" value: "COUNT" }
                input_map { key: "MODE" value: "MODE" } output_map { key: "TEXT" value: "each" } },
              { model_name: "gated" model_version: -1 input_map { key: "INPUT0" value: "each" }
                output_map { key: "OUTPUT0" value: "TEXT" } } ] }
            """;

    @TempDir
    private static Path directory;

    private static Repository models;
    private static NereidServer nereid;
    private static CountingServer counting;
    private static TestServer server;

    /** Of the current test; the server is shared. */
    private static volatile FlowWatch watch;

    private ManagedChannel channel;

    @BeforeAll
    static void start() throws IOException, InterruptedException {
        models = new Repository(directory.resolve("models"))
                .model("paced", "backend: \"paced\"\n" + INPUTS)
                .model("gated", Repository.identity(0, "STRING", "[ 1 ]", "").replace("\"identity\"", "\"gated\""))
                .model("pages", "platform: \"ensemble\"\n" + INPUTS + STEPS);
        nereid = NereidServer.start(TestServer.of(models)
                // The limit of requests is not that of bytes.
                .with(o -> o.limits(0, 0))
                .withPlugins(
                        GatedPlugin.pack(directory.resolve("plugins"), PacedBackendProvider.class),
                        GatedPlugin.pack(directory.resolve("gated"))));
        counting = new CountingServer(nereid, observer -> watch.of(observer));
        server = TestServer.open(nereid, port -> counting);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @BeforeEach
    void connect() {
        watch = new FlowWatch(nereid.memory());
        channel = NettyChannelBuilder.forAddress("127.0.0.1", server.grpcPort())
                .usePlaintext()
                .directExecutor()
                .flowControlWindow(WINDOW)
                .build();
    }

    @AfterEach
    void disconnect() throws InterruptedException {
        channel.shutdownNow().awaitTermination(SECONDS, TimeUnit.SECONDS);
        counting.awaitCompletion();
        Eventually.holds("no memory in use", SECONDS, () -> nereid.memory().bytesInUse() == 0);
    }

    @ParameterizedTest
    @ValueSource(ints = {BY_ACTION, BY_THREAD})
    void aSlowClientOverGrpcLosesNothing(int mode) throws Exception {
        GrpcStream stream = new GrpcStream(mode, COUNT);
        stream.call.request(20);

        long paused = awaitPause();
        stream.call.request(Integer.MAX_VALUE);

        assertThat(paused).isLessThan(COUNT);
        assertThat(stream.end()).isEqualTo(Status.OK);
        assertThat(stream.error).isEmpty();
        assertThat(stream.next).isEqualTo(COUNT);
        assertThat(watch.maxMemory()).isLessThan(2 * MIB);
    }

    @ParameterizedTest
    @ValueSource(ints = {BY_ACTION, BY_THREAD})
    void aSlowClientOverHttpLosesNothing(int mode) throws Exception {
        try (Socket socket = overHttp(mode, COUNT)) {
            long paused = awaitPause();
            BufferedReader in =
                    new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            int next = 0;
            for (String line = in.readLine(); next < COUNT && line != null; line = in.readLine()) {
                int at = line.indexOf("\"TEXT\":\"");
                if (at >= 0) {
                    int digits = at + "\"TEXT\":\"".length();
                    assertThat(Integer.parseInt(line.substring(digits, digits + DIGITS)))
                            .isEqualTo(next);
                    next++;
                }
            }

            assertThat(paused).isLessThan(COUNT);
            assertThat(next).isEqualTo(COUNT);
            assertThat(watch.maxMemory()).isLessThan(2 * MIB);
        }
    }

    @Test
    void aClientThatLeavesEndsTheStep() throws Exception {
        GrpcStream grpc = new GrpcStream(BY_ACTION, COUNT);
        awaitPause();
        grpc.call.cancel("the test goes", null);
        counting.awaitCompletion();
        assertThat(watch.sent()).isLessThan(COUNT);

        watch = new FlowWatch(nereid.memory());
        try (Socket http = overHttp(BY_ACTION, COUNT)) {
            awaitPause();
            http.setSoLinger(true, 0);
        }
        counting.awaitCompletion();
        assertThat(watch.sent()).isLessThan(COUNT);
    }

    @Test
    void aStepThatDoesNotMindTheFlowFailsItsRequestAlone() throws Exception {
        Path gate = GatedPlugin.close(models, "gated", "execute");
        long before = failed("paced");
        GrpcStream stream = new GrpcStream(HEEDLESS, Integer.MAX_VALUE);
        stream.call.request(Integer.MAX_VALUE);
        Eventually.holds("waiting", SECONDS, () -> GatedPlugin.isWaitedAt(gate));
        // The request fails when 64 MiB wait, and completes when the step that waits has ended.
        Eventually.holds("cancelled", SECONDS, () -> failed("paced") == before + 1);

        GatedPlugin.open(gate);
        Files.delete(gate.resolveSibling("execute.gate.waiting"));

        assertThat(stream.end()).isEqualTo(Status.OK);
        assertThat(stream.error).startsWith("in ensemble 'pages', ").contains("responses of model 'paced'");
        GrpcStream next = new GrpcStream(BY_ACTION, 3);
        next.call.request(Integer.MAX_VALUE);
        assertThat(next.end()).isEqualTo(Status.OK);
        assertThat(next.next).isEqualTo(3);
    }

    private static long failed(String model) {
        return nereid.models()
                .statistics(ModelRef.latest(model))
                .getFirst()
                .inferences()
                .fail()
                .count();
    }

    /** Waits until no further response is sent; returns how many were. */
    private static long awaitPause() {
        long[] last = {-1, System.nanoTime()};
        Eventually.holds("a pause", SECONDS, () -> {
            long now = System.nanoTime();
            if (watch.sent() != last[0]) {
                last[0] = watch.sent();
                last[1] = now;
            }
            return last[0] > 0 && now - last[1] > QUIET_NANOS;
        });
        return last[0];
    }

    private static Socket overHttp(int mode, int count) throws IOException {
        Socket socket = new Socket();
        socket.setReceiveBufferSize(WINDOW);
        socket.setSoTimeout((int) TimeUnit.SECONDS.toMillis(SECONDS));
        socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), server.httpPort()));
        String body = "{\"COUNT\":" + count + ",\"MODE\":" + mode + "}";
        socket.getOutputStream()
                .write(HttpRequests.post("/v2/models/pages/generate_stream", body.getBytes(StandardCharsets.UTF_8)));
        return socket;
    }

    /** A gRPC stream with one request. It reads what the test requests. */
    private final class GrpcStream extends ClientCall.Listener<ModelStreamInferResponse> {
        final ClientCall<ModelInferRequest, ModelStreamInferResponse> call;
        volatile int next;
        volatile String error = "";
        private final CompletableFuture<Status> end = new CompletableFuture<>();

        GrpcStream(int mode, int count) {
            call = channel.newCall(GRPCInferenceServiceGrpc.getModelStreamInferMethod(), CallOptions.DEFAULT);
            call.start(this, new Metadata());
            ModelInferRequest.Builder request = ModelInferRequest.newBuilder().setModelName("pages");
            add(request, "COUNT", count);
            add(request, "MODE", mode);
            call.sendMessage(request.build());
            call.halfClose();
        }

        private static void add(ModelInferRequest.Builder request, String input, int value) {
            request.addInputsBuilder().setName(input).setDatatype("INT32").addShape(1);
            request.addRawInputContents(ByteString.copyFrom(TensorBytes.ints(value)));
        }

        @Override
        @SuppressWarnings("NonAtomicVolatileUpdate") // by one thread
        public void onMessage(ModelStreamInferResponse message) {
            if (!message.getErrorMessage().isEmpty()) {
                error = message.getErrorMessage();
                return;
            }
            String text = message.getInferResponse()
                    .getRawOutputContents(0)
                    .substring(Integer.BYTES, Integer.BYTES + DIGITS)
                    .toStringUtf8();
            if (Integer.parseInt(text) == next) {
                next++;
            } else {
                end.completeExceptionally(new AssertionError("response " + text + " (expected: " + next + ")"));
            }
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            end.complete(status);
        }

        Status end() throws Exception {
            return end.get(SECONDS, TimeUnit.SECONDS);
        }
    }
}
