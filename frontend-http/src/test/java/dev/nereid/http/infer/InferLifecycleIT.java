package dev.nereid.http.infer;

import static dev.nereid.http.RawHttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the lifecycle of requests. Responses come late, out of order or never, and clients disconnect. */
@Timeout(60)
@Tag("slow")
class InferLifecycleIT {
    private static final String LATER = "/v2/models/later/infer";

    private final BlockingQueue<ReceivedRequest> requests = new LinkedBlockingQueue<>();
    private final ExecutorService instance = Executors.newSingleThreadExecutor();
    private RunningFrontend frontend;

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
        frontend.server.add(FakeModel.identity("later", DataType.UINT8, 0, -1).responding(requests::add));
        frontend.server.add(
                FakeModel.identity("threaded", DataType.UINT8, 0, -1).on(instance));
    }

    @AfterEach
    void stop() {
        frontend.close();
        instance.shutdown();
    }

    @Test
    void respondsToPipelinedRequestsInOrder() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            for (int i = 0; i < 5; i++) {
                connection.post("/v2/models/threaded/infer", "", body(i));
            }
            connection.request("GET", "/v2/health/live");
            connection.post(LATER, "", body(9));

            for (int i = 0; i < 5; i++) {
                assertThat(connection.receive().text()).contains("\"data\":[" + i + "]");
            }
            assertThat(connection.receive().body()).isEmpty();
            take().respondWithInputs();
            assertThat(connection.receive().text()).contains("\"data\":[9]");
        }
    }

    @Test
    void servesOneConnectionWhileAnotherWaits() throws Exception {
        try (RawHttpConnection first = frontend.connect();
                RawHttpConnection second = frontend.connect()) {
            first.post(LATER, "", body(1));
            ReceivedRequest waiting = take();

            assertThat(second.post("/v2/models/plain/infer", "", body(2))
                            .receive()
                            .text())
                    .contains("\"data\":[2]");

            waiting.respondWithInputs();
            assertThat(first.receive().text()).contains("\"data\":[1]");
        }
    }

    @Test
    void cancelsTheRequestOfADisconnectedClient() throws Exception {
        RawHttpConnection connection = frontend.connect();
        connection.post(LATER, "", body(1));
        ReceivedRequest received = take();

        connection.close();

        assertThat(received.awaitCancel(Duration.ofSeconds(20))).isTrue();
    }

    @Test
    void closesTheResponseOfADisconnectedClient() throws Exception {
        byte[] large = new byte[8 << 20];
        RawHttpConnection connection = frontend.connect();
        connection.post("/v2/models/later/infer", "Inference-Header-Content-Length: 0\r\n", large);
        ReceivedRequest received = take();

        // The client does not read: the response cannot be sent before the connection is gone.
        received.respondWithInputs();
        connection.close();

        frontend.http.close();
        frontend.memory.close();
    }

    @Test
    void releasesTheBodyOfAClientThatDisconnectsInItsMiddle() throws Exception {
        try (RawHttpConnection watcher = frontend.connect()) {
            RawHttpConnection connection = frontend.connect();
            connection.send(
                    bytes("POST " + LATER + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"inputs\":"));
            watcher.request("GET", "/v2").receive();

            connection.close();
        }

        assertThat(requests).isEmpty();
    }

    @Test
    void completesRequestsInFlightWhenItCloses() throws Exception {
        try (RawHttpConnection busy = frontend.connect();
                RawHttpConnection idle = frontend.connect()) {
            assertThat(idle.request("GET", "/v2").receive().status()).isEqualTo(200);
            busy.post(LATER, "", body(1));
            ReceivedRequest received = take();

            CompletableFuture<Void> closing = CompletableFuture.runAsync(frontend.http::close, instance);

            assertThat(idle.isClosedByServer()).isTrue();
            assertThat(closing).isNotDone();
            try (RawHttpConnection late = frontend.connect()) {
                RawHttpConnection.Response sentAway =
                        late.post(LATER, "", body(2)).receive();
                assertThat(sentAway.status()).isEqualTo(503);
                assertThat(sentAway.text()).isEqualTo("{\"error\":\"Server exiting\"}");
                assertThat(late.isClosedByServer()).isTrue();
            }
            received.respondWithInputs();
            assertThat(busy.receive().text()).contains("\"data\":[1]");
            closing.get(20, TimeUnit.SECONDS);
            assertThat(busy.isClosedByServer()).isTrue();
        }
    }

    @Test
    void respondsToEveryRequestOfManyClients() throws Exception {
        List<Callable<Integer>> clients = new ArrayList<>();
        for (int client = 0; client < 8; client++) {
            int offset = client;
            clients.add(() -> runClient(offset, 250));
        }
        int responses = 0;
        try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
            for (Future<Integer> client : threads.invokeAll(clients)) {
                responses += client.get();
            }
        }

        assertThat(responses).isEqualTo(8 * 250);
    }

    @Test
    void speaksWithTheClientOfTheJdk() throws Exception {
        try (HttpClient client = HttpClient.newHttpClient()) {
            HttpRequest request = HttpRequest.newBuilder(
                            URI.create("http://127.0.0.1:" + frontend.http.port() + "/v2/models/threaded/infer"))
                    .POST(HttpRequest.BodyPublishers.ofByteArray(body(5)))
                    .build();

            HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());

            assertThat(response.statusCode()).isEqualTo(200);
            assertThat(response.body()).contains("\"data\":[5]");
        }
    }

    private int runClient(int offset, int requests) throws IOException {
        int responses = 0;
        try (RawHttpConnection connection = frontend.connect()) {
            for (int i = 0; i < requests; i++) {
                int value = (offset + i) % 256;
                String path = i % 2 == 0 ? "/v2/models/threaded/infer" : "/v2/models/plain/infer";
                boolean valid = i % 3 != 0;
                connection.post(path, "", valid ? body(value) : bytes("{\"inputs\":[" + value));
                RawHttpConnection.Response response = connection.receive();
                assertThat(response.status()).isEqualTo(valid ? 200 : 500);
                assertThat(response.text()).contains(valid ? "\"data\":[" + value + "]" : "Missing a comma");
                responses++;
            }
        }
        return responses;
    }

    private ReceivedRequest take() throws InterruptedException {
        ReceivedRequest received = requests.poll(20, TimeUnit.SECONDS);
        assertThat(received).isNotNull();
        return received;
    }

    private static byte[] body(int value) {
        return bytes(
                "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1],\"datatype\":\"UINT8\",\"data\":[" + value + "]}]}");
    }
}
