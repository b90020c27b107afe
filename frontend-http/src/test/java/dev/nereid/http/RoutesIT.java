package dev.nereid.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import java.io.IOException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Everything that is not an inference, over real sockets. */
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
        RawHttpConnection.Response answer = exchange("GET", "/v2?x=1");

        assertThat(answer.status()).isEqualTo(200);
        assertThat(answer.header("content-type")).isEqualTo("application/json");
        assertThat(answer.text())
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

        RawHttpConnection.Response answer = exchange("GET", path);

        assertThat(answer.status()).isEqualTo(503);
        assertThat(answer.header("content-type")).isEqualTo("text/plain");
        assertThat(answer.text()).isEqualTo("{\"error\":\"Server exiting\"}");
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
        RawHttpConnection.Response answer = exchange("GET", "/v2/models/id/versions/1/config");

        assertThat(answer.status()).isEqualTo(200);
        assertThat(answer.header("content-type")).isEqualTo("application/json");
        assertThat(answer.text()).isEqualTo("{\"name\":\"id\",\"max_batch_size\":8}");
    }

    @Test
    void returnsModelReadiness() throws IOException {
        frontend.server.add(FakeModel.identity("sick", DataType.INT8, 0, -1).ready(false));

        assertThat(exchange("GET", "/v2/models/id/ready").status()).isEqualTo(200);
        assertThat(exchange("GET", "/v2/models/sick/versions/1/ready").status()).isEqualTo(400);
        assertThat(exchange("GET", "/v2/models/sick/ready").text())
                .isEqualTo("{\"error\":\"Model version not ready\"}");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/v2/models/nope | 404 | Request for unknown model: 'nope' is not found",
                "/v2/models/nope/config | 404 | Request for unknown model: 'nope' is not found",
                "/v2/models/nope/ready | 404 | Request for unknown model: 'nope' is not found",
                "/v2/models/%69d | 404 | Request for unknown model: '%69d' is not found",
                "/v2/models/id/versions/9 | 404 | Request for unknown model: 'id' version 9 is not found",
                "/v2/models/id/versions/99999999999999999999 | 400 | failed to get model version from specified version string '99999999999999999999' (details: stol), version should be an integral value > 0",
                "/v2/models/id/versions/abc | 404 | Not Found",
                "/v2/models/id/ | 404 | Not Found",
                "/v2/models | 404 | Not Found",
                "/v2/health | 404 | Not Found",
                "/V2 | 404 | Not Found",
                "//v2 | 404 | Not Found",
                "/ | 404 | Not Found",
            })
    void reportsNotFound(String path, int status, String error) throws IOException {
        RawHttpConnection.Response answer = exchange("GET", path);

        assertThat(answer.status()).isEqualTo(status);
        assertThat(answer.text()).isEqualTo("{\"error\":\"" + error + "\"}");
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
    })
    void reportsMethodNotAllowed(String method, String path, String contentType) throws IOException {
        RawHttpConnection.Response answer = exchange(method, path);

        assertThat(answer.status()).isEqualTo(405);
        assertThat(answer.header("content-type")).isEqualTo(contentType);
        assertThat(answer.text()).isEqualTo("{\"error\":\"Method Not Allowed\"}");
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
    void saysInOneLineThatAPortIsTaken() {
        HttpOptions options = RunningFrontend.OPTIONS.withAddress("127.0.0.1", frontend.http.port());

        assertThatThrownBy(() -> new RunningFrontend(options))
                .isInstanceOf(IOException.class)
                .hasMessageStartingWith(
                        "http-port: " + frontend.http.port() + " (expected: a port that is free on 127.0.0.1)");
    }

    @Test
    void servesFromSeveralEventLoops() throws IOException {
        try (RunningFrontend several = new RunningFrontend(RunningFrontend.OPTIONS.withEventLoops(3))) {
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
