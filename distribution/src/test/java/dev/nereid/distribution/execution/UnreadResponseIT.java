package dev.nereid.distribution.execution;

import static dev.nereid.distribution.testing.TensorBytes.floats;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.CountingServer;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests large requests with unread responses, or which wait for a model. The memory of the server stays within its
 * limit, later requests are refused or served, and all memory is released.
 */
@Timeout(120)
final class UnreadResponseIT {
    private static final int COUNT = 1 << 20;
    private static final int SIZE = COUNT * Float.BYTES;
    private static final int REQUESTS = 24;
    /** Memory for less than half of them. */
    private static final long LIMIT = 10L * SIZE;

    private static final long TIMEOUT_SECONDS = 60;

    @TempDir
    private Path directory;

    /** One connection has one response in progress, and one request behind it; the client's writes have to wait. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void holdsAClientBackThatSendsAndDoesNotRead(boolean binary) throws Exception {
        NereidServer nereid = NereidServer.start(TestServer.of(echo()));
        CountingServer counting = new CountingServer(nereid);
        byte[] request = binary ? request("echo").overHttp() : jsonResponse();
        try (TestServer server = TestServer.open(nereid, port -> counting);
                HttpConnection client = server.http()) {
            CompletableFuture<Void> sending = CompletableFuture.runAsync(() -> sendAll(client, request));
            Eventually.holds("a response", TIMEOUT_SECONDS, () -> counting.requests() > 0 && unread(client) > 0);
            // After so many responses to others, the server has read whatever it would read of this connection.
            for (int i = 0; i < 200; i++) {
                inferSmall(server);
            }

            assertThat(sending).isNotDone();
            assertThat(counting.requests()).isLessThan(200 + REQUESTS / 4);
            assertThat(nereid.memory().bytesInUse()).isLessThan(LIMIT);
            for (int i = 0; i < REQUESTS; i++) {
                assertThat(client.read().status()).isEqualTo(200);
            }
            sending.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            awaitNoMemory(server);
        }
    }

    @Test
    void refusesOverGrpcWhatThereIsNoMemoryFor() throws Exception {
        NereidServer nereid =
                NereidServer.start(TestServer.of(echo()).with(o -> o.tensorMemoryBytes = OptionalLong.of(LIMIT)));
        try (TestServer server = TestServer.open(nereid)) {
            ManagedChannel channel = server.grpc();
            List<Unread> calls = new ArrayList<>();
            for (int i = 0; i < REQUESTS; i++) {
                calls.add(new Unread(channel, request("echo").overGrpc()));
            }
            Eventually.holds(
                    "a refused request", TIMEOUT_SECONDS, () -> calls.stream().anyMatch(call -> call.end.isDone()));
            assertThat(nereid.memory().bytesInUse()).isLessThanOrEqualTo(LIMIT);

            calls.forEach(call -> call.call.request(2));

            int served = 0;
            for (Unread call : calls) {
                Status end = call.end.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
                assertThat(end.getCode()).isIn(Status.Code.OK, Status.Code.UNAVAILABLE);
                served += end.isOk() ? 1 : 0;
            }
            assertThat(served).isPositive();
            awaitNoMemory(server);
            assertThat(GRPCInferenceServiceGrpc.newBlockingStub(channel)
                            .modelInfer(request("echo").overGrpc())
                            .getRawOutputContents(0)
                            .size())
                    .isEqualTo(SIZE);
            channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        }
    }

    @Test
    void refusesWhatThereIsNoMemoryForWhileAModelIsBusy() throws Exception {
        Repository models = new Repository(directory.resolve("models"))
                .model("gated", Repository.identity(0, "FP32", "[ -1 ]", "").replace("\"identity\"", "\"gated\""))
                .model("echo", Repository.identity(0, "FP32", "[ -1 ]", ""));
        Path gate = GatedPlugin.close(models, "gated", "execute");
        Path[] built = TestPaths.plugins();
        NereidServer nereid = NereidServer.start(TestServer.of(models)
                .withPlugins(built[0], built[1], GatedPlugin.pack(directory.resolve("plugins")))
                .with(o -> {
                    o.tensorMemoryBytes = OptionalLong.of(LIMIT);
                    // or it would refuse them first
                    o.limits(0, 0);
                }));
        try (TestServer server = TestServer.open(nereid)) {
            List<HttpConnection> clients = new ArrayList<>();
            List<HttpConnection> waiting = new ArrayList<>();
            byte[] request = request("gated").overHttp();
            for (int i = 0; i < REQUESTS; i++) {
                HttpConnection client = server.http();
                clients.add(client);
                long before = nereid.memory().bytesInUse();
                client.send(request, 0, request.length);
                Eventually.holds(
                        "taken or refused",
                        TIMEOUT_SECONDS,
                        () -> nereid.memory().bytesInUse() >= before + SIZE || unread(client) > 0);
                if (unread(client) > 0) {
                    assertThat(client.read().status()).isEqualTo(503);
                } else {
                    waiting.add(client);
                }
                assertThat(nereid.memory().bytesInUse()).isLessThanOrEqualTo(LIMIT);
            }
            assertThat(waiting).hasSizeBetween(1, REQUESTS - 1);
            inferSmall(server);

            GatedPlugin.open(gate);

            for (HttpConnection client : waiting) {
                assertThat(client.read().status()).isEqualTo(200);
            }
            awaitNoMemory(server);
            for (HttpConnection client : clients) {
                client.close();
            }
        }
    }

    private Repository echo() {
        return new Repository(directory.resolve("models")).model("echo", Repository.identity(0, "FP32", "[ -1 ]", ""));
    }

    private static ClientRequest request(String model) {
        return ClientRequest.of(model).input("INPUT0", "FP32", new byte[SIZE], COUNT);
    }

    /** Builds a request in binary for a response in JSON. */
    private static byte[] jsonResponse() {
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[" + COUNT
                + "],\"parameters\":{\"binary_data_size\":" + SIZE + "}}]}";
        byte[] body = new byte[json.length() + SIZE];
        System.arraycopy(json.getBytes(StandardCharsets.UTF_8), 0, body, 0, json.length());
        return HttpRequests.post("/v2/models/echo/infer", body, "Inference-Header-Content-Length: " + json.length());
    }

    private static void inferSmall(TestServer server) throws IOException {
        try (HttpConnection other = server.http()) {
            assertThat(other.exchange(ClientRequest.of("echo")
                                    .input("INPUT0", "FP32", floats(1), 1)
                                    .overHttp())
                            .status())
                    .isEqualTo(200);
        }
    }

    private static void sendAll(HttpConnection client, byte[] request) {
        try {
            for (int i = 0; i < REQUESTS; i++) {
                client.send(request, 0, request.length);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static int unread(HttpConnection client) {
        try {
            return client.unread();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void awaitNoMemory(TestServer server) {
        Eventually.holds(
                "no memory in use",
                TIMEOUT_SECONDS,
                () -> server.server().memory().bytesInUse() == 0);
    }

    /** A call with a response that is not read until it is requested. Safe for use by any thread. */
    private static final class Unread extends ClientCall.Listener<ModelInferResponse> {
        final ClientCall<ModelInferRequest, ModelInferResponse> call;
        final CompletableFuture<Status> end = new CompletableFuture<>();

        Unread(ManagedChannel channel, ModelInferRequest request) {
            call = channel.newCall(GRPCInferenceServiceGrpc.getModelInferMethod(), CallOptions.DEFAULT);
            call.start(this, new Metadata());
            call.sendMessage(request);
            call.halfClose();
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            end.complete(status);
        }
    }
}
