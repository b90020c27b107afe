package dev.nereid.http.connection;

import static dev.nereid.http.RawHttpConnection.bytes;
import static dev.nereid.http.RawHttpConnection.join;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import java.io.IOException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Limits and connection handling of HTTP/1.1. */
@Timeout(60)
@Tag("slow")
class TransportIT {
    private static final String INFER = "/v2/models/id/infer";
    private static final String ONE_TO_FOUR =
            "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}]}";

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
    void limitsTheRequestLine() throws IOException {
        assertThat(exchange("GET /v2/models/" + "m".repeat(16_000) + " HTTP/1.1\r\nHost: x\r\n\r\n")
                        .status())
                .isEqualTo(404);

        assertClosed(
                "GET /v2/models/" + "m".repeat(17_000) + " HTTP/1.1\r\nHost: x\r\n\r\n",
                414,
                "request line: too long (expected: at most 16384 bytes)");
    }

    @Test
    void limitsTheHeaders() throws IOException {
        assertThat(exchange("GET /v2 HTTP/1.1\r\nHost: x\r\nAuthorization: " + "t".repeat(60_000) + "\r\n\r\n")
                        .status())
                .isEqualTo(200);

        assertClosed(
                "GET /v2 HTTP/1.1\r\nHost: x\r\nAuthorization: " + "t".repeat(70_000) + "\r\n\r\n",
                431,
                "headers: too large (expected: at most 65536 bytes)");
    }

    @ParameterizedTest
    @ValueSource(strings = {"-1", "abc", "18446744073709551616"})
    void refusesLengths(String length) throws IOException {
        assertClosed(
                "POST " + INFER + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + "\r\n\r\n",
                400,
                "Unable to parse Content-Length, got: " + length);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "Content-Length: 3\r\nTransfer-Encoding: chunked",
                "Content-Length: 3\r\nContent-Length: 4",
                "Content-Length : 3",
            })
    void refusesMalformedHttp(String header) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response = connection
                    .send(bytes("POST " + INFER + " HTTP/1.1\r\nHost: x\r\n" + header + "\r\n\r\nabc"))
                    .receive();

            assertThat(response.status()).isEqualTo(400);
            assertThat(response.header("connection")).isEqualTo("close");
            assertThat(response.text()).startsWith("{\"error\":\"this is no request of HTTP/1.1: ");
            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "GET /v2 | no version (expected: METHOD PATH HTTP/1.1) | 400",
                "GET | no path and no version (expected: METHOD PATH HTTP/1.1) | 400",
                "hello | no path and no version (expected: METHOD PATH HTTP/1.1) | 400",
                "GET /v2 HTTP/9 | version 'HTTP/9' (expected: HTTP/1.1 or HTTP/1.0) | 400",
                "GET /v2 HTTP/1. | version 'HTTP/1.' (expected: HTTP/1.1 or HTTP/1.0) | 400",
                "GET /v2 HTTP/11111111111.1 | version 'HTTP/11111111111.1' (expected: HTTP/1.1 or HTTP/1.0) | 400",
                "GET /v2 FTP/1.1 | version 'FTP/1.1' (expected: HTTP/1.1 or HTTP/1.0) | 400",
                "GET /v2 HTTP/1.1 x | version 'HTTP/1.1 x' (expected: HTTP/1.1 or HTTP/1.0; a blank in a path is"
                        + " written as %20) | 400",
                "GET /v2/he alth HTTP/1.1 | version 'alth HTTP/1.1' (expected: HTTP/1.1 or HTTP/1.0; a blank in a path"
                        + " is written as %20) | 400",
                "PRI * HTTP/2.0 | HTTP/2.0 (expected: HTTP/1.1 or HTTP/1.0) | 501",
                "GET /v2 HTTP/9.9 | HTTP/9.9 (expected: HTTP/1.1 or HTTP/1.0) | 501",
                "G(T /v2 HTTP/1.1 | method 'G(T' (expected: a word such as GET or POST) | 400",
                "G\u0001T /v2 HTTP/1.1 | method 'G\\u0001T' (expected: a word such as GET or POST) | 400",
                "GET /v2<LF> | ends with LF alone (expected: CR LF) | 400",
            })
    void saysWhatIsWrongWithARequestLine(String line, String problem, int status) throws IOException {
        assertClosed(
                line.replace("<LF>", "\n") + "\r\nHost: x\r\n\r\n",
                status,
                "this is no request of HTTP/1.1: request line: " + problem);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"GET /v2 \u0000\u0007\u00e9", "GET \u000b\u000c", "\u00e9\u00e9 / HTTP/1.1", "GET\u0001/v2"})
    void refusesBinaryRequestLines(String line) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response =
                    connection.send(bytes(line + "\r\n\r\n")).receive();

            assertThat(response.status()).isEqualTo(400);
            assertThat(response.text()).startsWith("{\"error\":\"this is no request of HTTP/1.1: request line: ");
            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    @Test
    void quotesLittleOfALongVersion() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response = connection
                    .send(bytes("GET /v2 " + "x".repeat(10_000) + "\r\n\r\n"))
                    .receive();

            assertThat(response.text()).hasSizeLessThan(500).endsWith("…' (expected: HTTP/1.1 or HTTP/1.0)\"}");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "Host | No colon found",
                "Host: x<LF>X: y | a line ends with LF alone (expected: CR LF)",
            })
    void saysWhatIsWrongWithHeaders(String header, String problem) throws IOException {
        assertClosed(
                "GET /v2 HTTP/1.1\r\n" + header.replace("<LF>", "\n") + "\r\n\r\n",
                400,
                "this is no request of HTTP/1.1: headers: " + problem);
    }

    @Test
    void needsNoHost() throws IOException {
        assertThat(exchange("GET /v2/health/live HTTP/1.1\r\n\r\n").status()).isEqualTo(200);
        assertThat(exchange("POST " + INFER + " HTTP/1.1\r\nContent-Length: " + ONE_TO_FOUR.length() + "\r\n\r\n"
                                + ONE_TO_FOUR)
                        .status())
                .isEqualTo(200);
    }

    @Test
    void doesNotSendContinueForRefusedBodies() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response = connection
                    .send(bytes("POST " + INFER
                            + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1048577\r\n\r\n"))
                    .receive();

            assertThat(response.status()).isEqualTo(400);
            assertThat(response.header("connection")).isEqualTo("close");
            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    @ParameterizedTest
    @CsvSource({
        "POST, /v2/repository/models/m/load, 10737418240, 400",
        "POST, /v2/repository/r/models/m/load, 2, 501",
        "POST, /v2/models/id/generate, 10737418240, 400",
        "POST, /v2/models/nope/generate, 2, 404",
        "POST, /v2/nowhere, 10737418240, 404",
        "POST, /v2, 10737418240, 405",
        "GET, /v2, 10737418240, 200",
    })
    void doesNotSendContinueForDiscardedBodies(String method, String path, long length, int status) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response =
                    connection.send(expecting(method, path, length)).receive();

            assertThat(response.status()).isEqualTo(status);
            assertThat(response.header("connection")).isEqualTo("close");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/v2/nowhere", "/v2", "/v2/models/id/generate", "/v2/repository/models/m/load"})
    void announcesCloseForBodiesThatAreTooLong(String path) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response = connection
                    .send(bytes("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 10737418240\r\n\r\n"))
                    .receive();

            assertThat(response.status()).isGreaterThanOrEqualTo(400);
            assertThat(response.header("connection")).isEqualTo("close");
        }
    }

    @Test
    void sendsContinueForBodiesThatAreRead() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(expecting("POST", "/v2/repository/index", 2));

            assertThat(connection.receive().status()).isEqualTo(100);
            assertThat(connection.send(bytes("{}")).receive().status()).isEqualTo(200);
        }
    }

    @Test
    void sendsContinueForSmallUnreadBodies() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("GET /v2 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));

            assertThat(connection.receive().status()).isEqualTo(100);
            assertThat(connection.send(bytes("{}")).receive().status()).isEqualTo(200);
        }
    }

    @Test
    void clientsThatSendFarTooMuchCanReadTheirResponse() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("POST " + INFER + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"));
            byte[] piece = new byte[1 << 20];
            for (int i = 0; i < 50; i++) {
                connection.send(piece);
            }

            RawHttpConnection.Response response = connection.receive();
            assertThat(response.text()).contains("request JSON size of 1000000000 bytes exceeds");
            assertThat(response.header("connection")).isEqualTo("close");
            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    /**
     * Bytes that a client sends after its response are read while they keep coming, here for longer than the idle
     * limit.
     */
    @Test
    void closesOnlyWhenTheClientIsSilent() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("POST " + INFER + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"));
            assertThat(connection.receive().status()).isEqualTo(400);
            for (int i = 0; i < 3; i++) {
                assertThat(connection.send(new byte[1000]).isQuietFor(2000))
                        .as("left open")
                        .isTrue();
            }

            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    @Test
    void closesAfterTooManyChunks() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response = connection
                    .send(join(
                            bytes("POST " + INFER + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"),
                            bytes("1\r\n \r\n".repeat(70_000) + "0\r\n\r\n")))
                    .receive();

            assertThat(response.text())
                    .isEqualTo("{\"error\":\"Chunked request body exceeds maximum of 65536 non-empty chunks. Send fewer"
                            + " or larger HTTP chunks.\"}");
            assertThat(response.header("connection")).isEqualTo("close");
            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    @Test
    void keepsTheConnectionAfterErrorsOfTheBody() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            assertThat(connection.post(INFER, "", bytes("{")).receive().status())
                    .isEqualTo(500);
            assertThat(connection
                            .post("/v2/models/nope/infer", "", new byte[20 << 20])
                            .receive()
                            .status())
                    .isEqualTo(404);
            assertThat(connection.post(INFER, "", bytes(ONE_TO_FOUR)).receive().status())
                    .isEqualTo(200);
        }
    }

    @Test
    void speaksNoHttp2() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));

            assertThat(connection.receive().status()).isEqualTo(501);
            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    private void assertClosed(String request, int status, String error) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response =
                    connection.send(bytes(request)).receive();

            assertThat(response.text()).isEqualTo("{\"error\":\"" + error + "\"}");
            assertThat(response.status()).isEqualTo(status);
            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    private static byte[] expecting(String method, String path, long length) {
        return bytes(method + " " + path + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " + length
                + "\r\n\r\n");
    }

    private RawHttpConnection.Response exchange(String request) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.send(bytes(request)).receive();
        }
    }
}
