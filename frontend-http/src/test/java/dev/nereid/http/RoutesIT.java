package dev.nereid.http;

import static dev.nereid.http.RawHttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelControl;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeModel;
import io.vertx.core.Vertx;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Routes, access to raw paths, methods and errors of control requests, over sockets. */
class RoutesIT {
    private RunningFrontend frontend;

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
    }

    @AfterEach
    void stop() {
        frontend.close();
    }

    @Test
    void returnsServerMetadata() throws IOException {
        RawHttpConnection.Response response = exchange("GET", "/v2?x=1");

        assertThat(response.status()).isEqualTo(200);
        assertThat(response.header("content-type")).isEqualTo("application/json");
        assertThat(response.text())
                .isEqualTo("{\"name\":\"fake\",\"version\":\"0.0\",\"extensions\":[\"binary_tensor_data\"]}");
    }

    @Test
    void returnsServerHealth() throws IOException {
        assertThat(exchange("GET", "/v2/health/live").status()).isEqualTo(200);
        assertThat(exchange("GET", "/v2/health/ready").status()).isEqualTo(200);

        frontend.server.setLive(false);
        frontend.server.setReady(false);

        RawHttpConnection.Response live = exchange("GET", "/v2/health/live");
        assertThat(live.status()).isEqualTo(400);
        assertThat(live.header("content-type")).isEqualTo("text/plain");
        assertThat(live.body()).isEmpty();
        assertThat(exchange("GET", "/v2/health/ready").status()).isEqualTo(400);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/v2/health/live", "/v2/health/ready"})
    void reportsThatTheServerExits(String path) throws IOException {
        frontend.server.setExiting(true);

        RawHttpConnection.Response response = exchange("GET", path);

        assertThat(response.status()).isEqualTo(503);
        assertThat(response.header("content-type")).isEqualTo("text/plain");
        assertThat(response.text()).isEqualTo("{\"error\":\"Server exiting\"}");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/v2/models/id", "/v2/models/id/versions/1", "/v2/models/id/versions/latest"})
    void returnsModelMetadata(String path) throws IOException {
        assertThat(exchange("GET", path).text())
                .isEqualTo("{\"name\":\"id\",\"versions\":[\"1\"],\"platform\":\"identity\","
                        + "\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[-1,-1]}],"
                        + "\"outputs\":[{\"name\":\"OUTPUT0\",\"datatype\":\"FP32\",\"shape\":[-1,-1]}]}");
    }

    @Test
    void describesModelsThatDoNotBatch() throws IOException {
        assertThat(exchange("GET", "/v2/models/plain").text()).contains("\"shape\":[-1]}");
    }

    @Test
    void returnsModelConfigurations() throws IOException {
        RawHttpConnection.Response response = exchange("GET", "/v2/models/id/versions/1/config");

        assertThat(response.status()).isEqualTo(200);
        assertThat(response.header("content-type")).isEqualTo("application/json");
        assertThat(response.text()).isEqualTo("{\"name\":\"id\",\"max_batch_size\":8}");
    }

    @Test
    void returnsModelReadiness() throws IOException {
        frontend.server.add(FakeModel.identity("unready", DataType.INT8, 0, -1).ready(false));

        assertThat(exchange("GET", "/v2/models/id/ready").status()).isEqualTo(200);
        assertThat(exchange("GET", "/v2/models/unready/versions/1/ready").status())
                .isEqualTo(400);
        assertThat(exchange("GET", "/v2/models/unready/ready").text())
                .isEqualTo("{\"error\":\"Model version not ready\"}");
    }

    @Test
    void returnsWhyAModelIsNotReady() throws IOException {
        frontend.server.setReadiness(_ -> CompletableFuture.completedStage(
                ModelCatalog.Readiness.notReady(ErrorCode.INTERNAL, "process 'p' has ended")));

        RawHttpConnection.Response response = exchange("GET", "/v2/models/id/ready");

        assertThat(response.status()).isEqualTo(400);
        assertThat(response.text())
                .isEqualTo("{\"error\":\"Model version not ready: INTERNAL: process 'p' has ended\"}");
    }

    /** There is one event loop: it serves others while an instance finds out whether it is ready. */
    @Test
    void returnsModelReadinessWhenItsCheckEnds() throws IOException {
        for (boolean isKnown : List.of(true, false)) {
            BlockingQueue<CompletableFuture<ModelCatalog.Readiness>> checks = new LinkedBlockingQueue<>();
            frontend.server.setReadiness(_ -> {
                CompletableFuture<ModelCatalog.Readiness> check = new CompletableFuture<>();
                checks.add(check);
                return check;
            });
            try (RawHttpConnection connection = frontend.connect()) {
                connection.request("GET", "/v2/models/id/ready");
                try (RawHttpConnection leaving = frontend.connect()) {
                    leaving.request("GET", "/v2/models/id/ready");
                    assertThat(exchange("GET", "/v2/models/id").status()).isEqualTo(200);
                }
                for (int i = 0; i < 2; i++) {
                    CompletableFuture<ModelCatalog.Readiness> check = take(checks);
                    if (isKnown) {
                        check.complete(ModelCatalog.Readiness.READY);
                    } else {
                        check.completeExceptionally(new InferenceException(ErrorCode.NOT_FOUND, "unloaded meanwhile"));
                    }
                }
                assertThat(connection.receive().status()).isEqualTo(isKnown ? 200 : 404);
            }
        }
    }

    private static <T> T take(BlockingQueue<T> queue) {
        try {
            return Objects.requireNonNull(queue.poll(30, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/v2/models/nope | 404 | Request for unknown model: 'nope' is not found",
                "/v2/models/nope/config | 404 | Request for unknown model: 'nope' is not found",
                "/v2/models/nope/ready | 404 | Request for unknown model: 'nope' is not found",
                "/v2/models/%69d | 404 | Request for unknown model: '%69d' is not found",
                "/v2/models/i%2Fd | 404 | Request for unknown model: 'i%2Fd' is not found",
                "/v2/models/%zz/config | 404 | Request for unknown model: '%zz' is not found",
                "/v2/models/.. | 404 | Request for unknown model: '..' is not found",
                "/v2/models/stats/ready | 404 | Request for unknown model: 'stats' is not found",
                "/v2/models/id/versions/9 | 404 | Request for unknown model: 'id' version 9 is not found",
                "/v2/models/id/versions/99999999999999999999 | 400 | failed to get model version from specified version string '99999999999999999999' (details: stol), version should be an integral value > 0",
                "/v2/models/id/versions/abc | 404 | Not Found",
                "/v2/models/id/ | 404 | Not Found",
                "/v2/models/id/config/ | 404 | Not Found",
                "/v2/models/id/stats/ | 404 | Not Found",
                "/v2/models//config | 404 | Not Found",
                "/v2/models/id/versions/ | 404 | Not Found",
                "/v2/models/id/versions/-1/config | 404 | Not Found",
                "/v2/models/id/%72eady | 404 | Not Found",
                "/v2/models/x/../id | 404 | Not Found",
                "/v2/models/id/infer/ | 404 | Not Found",
                "/v2/models/versions/infer/generate | 404 | Not Found",
                "/v2/models | 404 | Not Found",
                "/v2/models/ | 404 | Not Found",
                "/v2/ | 404 | Not Found",
                "/v2/../v2 | 404 | Not Found",
                "/%76%32 | 404 | Not Found",
                "/v2/health/live/ | 404 | Not Found",
                "/v2/health/\u0000live | 404 | Not Found",
                "/v2/systemsharedmemory | 404 | Not Found",
                "/v2/systemsharedmemory/status/ | 404 | Not Found",
                "/v2/systemsharedmemory/region//status | 404 | Not Found",
                "* | 404 | Not Found",
                "v2 | 404 | Not Found",
                "?x | 404 | Not Found",
                "/v2/health | 404 | Not Found",
                "/V2 | 404 | Not Found",
                "//v2 | 404 | Not Found",
                "/ | 404 | Not Found",
            })
    void reportsNotFound(String path, int status, String error) throws IOException {
        RawHttpConnection.Response response = exchange("GET", path);

        assertThat(response.status()).isEqualTo(status);
        assertThat(response.text()).isEqualTo("{\"error\":\"" + error + "\"}");
        assertThat(response.header("content-type"))
                .isEqualTo(error.equals("Not Found") ? "text/plain" : errorType(path));
    }

    private static String errorType(String path) {
        return path.endsWith("/ready") ? "text/plain" : "application/json";
    }

    @ParameterizedTest
    @CsvSource({
        "PUT, /v2/health/live, text/plain",
        "FOO, /v2/health/ready, text/plain",
        "DELETE, /v2, application/json",
        "POST, /v2/models/id, application/json",
        "POST, /v2/models/id/config, application/json",
        "POST, /v2/models/id/ready, text/plain",
        "GET, /v2/models/id/infer, text/plain",
        "PUT, /v2/models/id/versions/1/infer, text/plain",
        "GET, /v2/models/id/generate, application/json",
        "DELETE, /v2/models/id/generate_stream, application/json",
        "OPTIONS, /v2, application/json",
        "OPTIONS, /v2/models/id/infer, text/plain",
        "FOO, /v2/repository/index, application/json",
        "PUT, /v2/repository/r/models/m/load, application/json",
        "GET, /v2/repository/models/../load, application/json",
        "POST, /v2/systemsharedmemory/status, application/json",
        "GET, /v2/cudasharedmemory/region/x/register, application/json",
    })
    void reportsMethodNotAllowed(String method, String path, String contentType) throws IOException {
        RawHttpConnection.Response response = exchange(method, path);

        assertThat(response.status()).isEqualTo(405);
        assertThat(response.header("content-type")).isEqualTo(contentType);
        assertThat(response.text()).isEqualTo("{\"error\":\"Method Not Allowed\"}");
        assertThat(response.headers()).doesNotContainKey("allow");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "Host:\r\n", "Host: a b\r\n", "Host: x:y:z\r\n"})
    void acceptsRequestsWithoutValidHost(String host) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            for (String path : List.of("/v2/health/live", "/v2/models/id", "/v2/models/stats")) {
                assertThat(connection
                                .send(bytes("GET " + path + " HTTP/1.1\r\n" + host + "\r\n"))
                                .receive()
                                .status())
                        .as(path)
                        .isEqualTo(200);
            }
        }
    }

    @Test
    void sendsNoHeadersForOtherOrigins() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response = connection
                    .send(bytes("GET /v2 HTTP/1.1\r\nHost: x\r\nOrigin: http://y\r\n\r\n"))
                    .receive();

            assertThat(response.headers()).containsOnlyKeys("content-type", "content-length");
        }
    }

    /** Metadata is written by the event loop, statistics and index by a worker. */
    @ParameterizedTest
    @CsvSource({
        "GET, /v2/models/id, metadata",
        "GET, /v2/models/stats, statistics",
        "GET, /v2/models/id/stats, statistics",
        "POST, /v2/repository/index, index",
    })
    void respondsAfterAnErrorOfTheJvm(String verb, String path, String failing) throws IOException {
        Supplier<Object> tooDeep = () -> {
            throw new StackOverflowError("too deep");
        };
        ModelCatalog models = proxy(ModelCatalog.class, frontend.server.models(), failing, tooDeep);
        ModelControl control = proxy(ModelControl.class, frontend.server.control(), failing, tooDeep);
        InferenceServer withModels = proxy(InferenceServer.class, frontend.server, "models", () -> models);
        InferenceServer server = proxy(InferenceServer.class, withModels, "control", () -> control);
        Vertx vertx = Vertx.vertx();
        try (HttpFrontend http = HttpFrontend.start(vertx, server, RunningFrontend.OPTIONS);
                RawHttpConnection connection = new RawHttpConnection(http.port())) {
            RawHttpConnection.Response response = connection.request(verb, path).receive();

            assertThat(response.status()).isEqualTo(500);
            assertThat(response.header("content-type")).isEqualTo("application/json");
            assertThat(response.text()).isEqualTo("{\"error\":\"internal error\"}");
            assertThat(connection.request("GET", "/v2/health/live").receive().status())
                    .isEqualTo(200);
        } finally {
            vertx.close().await();
        }
    }

    /** Returns a proxy of an object, with another implementation of one method. */
    private static <T> T proxy(Class<T> type, T delegate, String method, Supplier<Object> replacement) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(),
                new Class<?>[] {type},
                (proxy, called, arguments) ->
                        called.getName().equals(method) ? replacement.get() : called.invoke(delegate, arguments)));
    }

    @Test
    void keepsConnectionsOpen() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            for (int i = 0; i < 3; i++) {
                assertThat(connection.request("GET", "/v2").receive().status()).isEqualTo(200);
                assertThat(connection.request("GET", "/nope").receive().status())
                        .isEqualTo(404);
            }
        }
    }

    @Test
    void reportsAPortInUseInOneLine() {
        HttpOptions options = RunningFrontend.options(http -> http.port = frontend.http.port());

        assertThatThrownBy(() -> new RunningFrontend(options))
                .isInstanceOf(IOException.class)
                .hasMessageStartingWith(
                        "http-port: " + frontend.http.port() + " (expected: a port that is free on 127.0.0.1)");
    }

    @Test
    void servesFromSeveralEventLoops() throws IOException {
        try (RunningFrontend several = new RunningFrontend(RunningFrontend.options(http -> http.eventLoops = 3))) {
            for (int i = 0; i < 6; i++) {
                try (RawHttpConnection connection = several.connect()) {
                    assertThat(connection
                                    .request("GET", "/v2/health/live")
                                    .receive()
                                    .status())
                            .isEqualTo(200);
                }
            }
        }
    }

    private RawHttpConnection.Response exchange(String method, String path) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.request(method, path).receive();
        }
    }
}
