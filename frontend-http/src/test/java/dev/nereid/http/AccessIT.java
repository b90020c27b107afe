package dev.nereid.http;

import static dev.nereid.http.RawHttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.frontend.ApiAccess;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** API groups that require a header with a secret. */
@Timeout(60)
class AccessIT {
    private static final String ALL_BUT_STATISTICS =
            "health,metadata,inference,shared-memory,model-config,model-repository";

    private RunningFrontend frontend;

    @AfterEach
    void stop() {
        frontend.close();
    }

    @ParameterizedTest
    @CsvSource({
        "metadata, GET, /v2",
        "health, GET, /v2/health/live",
        "health, GET, /v2/health/ready",
        "metadata, GET, /v2/models/id",
        "health, GET, /v2/models/id/versions/1/ready",
        "model-config, GET, /v2/models/id/config",
        "statistics, GET, /v2/models/stats",
        "statistics, GET, /v2/models/id/stats",
        "inference, POST, /v2/models/id/infer",
        "inference, GET, /v2/models/id/infer",
        "inference, POST, /v2/models/nope/infer",
        "inference, POST, /v2/models/id/generate",
        "inference, POST, /v2/models/id/generate_stream",
        "inference, GET, /v2/models/id/generate",
        "metadata, POST, /v2",
        "health, FOO, /v2/health/ready",
        "model-config, PUT, /v2/models/id/config",
        "statistics, POST, /v2/models/stats",
        "model-repository, GET, /v2/repository/index",
        "model-repository, POST, /v2/repository/r/models/id/load",
        "shared-memory, POST, /v2/cudasharedmemory/status",
        "model-repository, POST, /v2/repository/index",
        "model-repository, POST, /v2/repository/models/id/load",
        "model-repository, POST, /v2/repository/models/id/unload",
        "shared-memory, GET, /v2/systemsharedmemory/status",
        "shared-memory, POST, /v2/systemsharedmemory/region/x/register",
        "shared-memory, POST, /v2/cudasharedmemory/unregister",
    })
    void checksTheSecretFirst(String group, String method, String path) throws IOException {
        start(group + ":admin-key=s3=cret");
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response without =
                    connection.request(method, path).receive();
            RawHttpConnection.Response wrong = connection
                    .send(bytes(method + " " + path + " HTTP/1.1\r\nHost: x\r\nadmin-key: s3\r\n\r\n"))
                    .receive();
            RawHttpConnection.Response right = connection
                    .send(bytes(method + " " + path + " HTTP/1.1\r\nHost: x\r\nAdmin-Key: s3=cret\r\n\r\n"))
                    .receive();

            assertThat(without.status()).isEqualTo(403);
            assertThat(without.text())
                    .isEqualTo("{\"error\":\"This API is restricted, expecting header 'admin-key'\"}");
            assertThat(wrong.status()).isEqualTo(403);
            assertThat(right.status()).isNotEqualTo(403);
        }
        assertThat(frontend.server.control().unloads().size()).isLessThan(2);
    }

    @Test
    void allowsOtherGroups() throws IOException {
        start("model-repository,shared-memory:admin=x");
        try (RawHttpConnection connection = frontend.connect()) {
            assertThat(connection.request("GET", "/v2").receive().status()).isEqualTo(200);
            assertThat(connection.request("GET", "/v2/health/live").receive().status())
                    .isEqualTo(200);
        }
    }

    @Test
    void doesNotReadTheBodyOfARestrictedRequest() throws IOException {
        start(ALL_BUT_STATISTICS + ":admin=x");
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes(
                    "POST /v2/models/id/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{\"inputs\":"));

            assertThat(connection.receive().status()).isEqualTo(403);
        }
        assertThat(frontend.server.requests()).isEmpty();
    }

    /** The header announces tensors, which may be larger than JSON. */
    @ParameterizedTest
    @CsvSource({"POST, /v2/models/id/infer, 403", "POST, /v2/nope, 404", "PUT, /v2/health/live, 405"})
    void readsNoMoreOfARefusedBodyThanOfJson(String method, String path, int status) throws IOException {
        frontend = new RunningFrontend(RunningFrontend.options(http -> {
            http.maxRequestBytes = 1L << 40;
            http.access = ApiAccess.parse(List.of("inference:admin=x"));
        }));
        String header = method + " " + path + " HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: 0\r\n";
        long maxBytes = 144L << 20;

        try (RawHttpConnection connection = frontend.connect()) {
            assertThat(connection
                            .send(bytes(header + "Content-Length: " + maxBytes + "\r\n\r\n"))
                            .receive()
                            .header("connection"))
                    .isEmpty();
        }
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes(header + "Content-Length: " + (1L << 39) + "\r\n\r\n"));
            RawHttpConnection.Response response = connection.receive();
            assertThat(response.status()).isEqualTo(status);
            assertThat(response.header("connection")).isEqualTo("close");
            byte[] chunk = new byte[1 << 20];
            for (int i = 0; i < 145; i++) {
                connection.send(chunk);
            }

            assertThat(connection.isQuietFor(3000)).as("open").isFalse();
        }
    }

    @Test
    void respondsNotFoundForUnknownPaths() throws IOException {
        start(ALL_BUT_STATISTICS + ":admin=x");
        try (RawHttpConnection connection = frontend.connect()) {
            assertThat(connection.request("GET", "/v2/nope").receive().status()).isEqualTo(404);
        }
    }

    private void start(String restriction) throws IOException {
        frontend = new RunningFrontend(
                RunningFrontend.options(http -> http.access = ApiAccess.parse(List.of(restriction))));
    }
}
