package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.RawHttpResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that a server stopped under HTTP load responds to each request it read. */
@Timeout(180)
@Tag("slow")
final class DrainIT {
    private static final int CLIENTS = 16;
    private static final byte[] BODY =
            ("{\"inputs\": [{\"name\": \"INPUT0\", \"datatype\": \"INT32\", \"shape\": [1, 4], \"data\": [1, 2, 3,"
                            + " 4]}, {\"name\": \"INPUT1\", \"datatype\": \"INT32\", \"shape\": [1, 4], \"data\": [1,"
                            + " 2, 3, 4]}]}")
                    .getBytes(StandardCharsets.UTF_8);
    private static final byte[] REQUEST = HttpRequests.post("/v2/models/add_sub/infer", BODY);

    @RepeatedTest(3)
    void noRequestIsLostUnderLoad() throws Exception {
        try (InstalledServer server = InstalledServer.serve(InstalledServer.MODELS)) {
            int port = URI.create(server.address("HTTP")).getPort();
            AtomicInteger completed = new AtomicInteger();
            List<CompletableFuture<String>> clients = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                clients.add(CompletableFuture.supplyAsync(
                        () -> sendUntilClosed(port, completed), InstalledServer.BLOCKING));
            }
            Eventually.holds("load", 60, () -> completed.get() > 50 * CLIENTS);

            server.signal("TERM");

            for (CompletableFuture<String> client : clients) {
                assertThat(client.get(60, TimeUnit.SECONDS)).isEqualTo("announced");
            }
            InstalledServer.Result result = server.awaitEnd();
            assertThat(result.status()).isZero();
            assertThat(result.err()).doesNotContain("WARN", "ERROR", "IllegalState");
        }
    }

    @Test
    void aServerIsNotReadyBeforeItStopsToServe() throws Exception {
        try (InstalledServer server = InstalledServer.serve(InstalledServer.MODELS, "--exit-delay-secs=12")) {
            server.signal("TERM");

            Eventually.holds("not ready", 60, () -> status(server, "/v2/health/ready") == 400);
            assertThat(status(server, "/v2/health/live")).isEqualTo(200);
            HttpResponse<String> response =
                    server.post("/v2/models/add_sub/infer", new String(BODY, StandardCharsets.UTF_8));
            assertThat(response.statusCode()).isEqualTo(200);
            assertThat(response.headers().firstValue("connection")).isEmpty();
            assertThat(server.awaitEnd().status()).isZero();
        }
    }

    private static int status(InstalledServer server, String path) {
        try {
            return server.get(path).statusCode();
        } catch (IOException e) {
            return 0;
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Sends one request after the other, until a response announces the end; returns the outcome. */
    private static String sendUntilClosed(int port, AtomicInteger completed) {
        try (HttpConnection connection = HttpConnection.to(port)) {
            while (true) {
                RawHttpResponse response = connection.exchange(REQUEST);
                if (response.status() != 200) {
                    return "status " + response.status();
                }
                completed.incrementAndGet();
                if ("close".equals(response.headers().get("connection"))) {
                    return connection.isClosed() ? "announced" : "not closed";
                }
            }
        } catch (IOException e) {
            return e.toString();
        }
    }
}
