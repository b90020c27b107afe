package dev.nereid.distribution.client;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests how long a client waits for a server. */
@Timeout(60)
final class ServerClientTest {
    private static final Duration SILENCE = Duration.ofMillis(500);
    private static final LoadRequest LOAD = new LoadRequest(Optional.empty(), Map.of(), false);

    /** The server accepts connections, and an event loop of it is blocked. */
    @Test
    void givesUpEachRequestToAServerThatDoesNotRespondAtAll() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                ServerClient client = client(silent.getLocalPort())) {
            String error = "http://127.0.0.1:" + silent.getLocalPort()
                    + ": no response within 1 s, and none to /v2/health/live (expected: the HTTP port of an inference"
                    + " server; one that is blocked logs 'event loop is blocked')";

            assertThatThrownBy(client::index)
                    .isInstanceOf(RequestException.class)
                    .hasMessage(error);
            assertThatThrownBy(() -> client.load("m", LOAD)).hasMessage(error);
            assertThatThrownBy(() -> client.unload("m", false)).hasMessage(error);
        }
    }

    @Test
    void waitsForALongLoadWhileTheServerResponds() throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        HttpServer http = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        http.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
        http.createContext("/", exchange -> {
            if (exchange.getRequestURI().getPath().equals("/v2/health/live")) {
                exchange.sendResponseHeaders(403, -1); // restricted: a response all the same
                asked.countDown();
            } else {
                await(asked);
                byte[] body = "[]".getBytes(UTF_8);
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
            }
            exchange.close();
        });
        http.start();
        try (ServerClient client = client(http.getAddress().getPort())) {
            client.load("m", LOAD);
            assertThat(client.index()).isEqualTo("[]");
        } finally {
            http.stop(0);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static ServerClient client(int port) {
        return new ServerClient(
                new ClientOptions(URI.create("http://127.0.0.1:" + port), Map.of(), Duration.ofMinutes(10)), SILENCE);
    }
}
