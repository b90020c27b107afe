package dev.nereid.http.infer;

import static dev.nereid.http.RawHttpConnection.bytes;
import static dev.nereid.http.RawHttpConnection.join;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.HttpOptions;
import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Headers that reach the backend as parameters. */
class ForwardedHeadersIT {
    private static final String BODY = "{\"parameters\":{\"X-A\":1,\"own\":true},\"inputs\":[{\"name\":\"INPUT0\","
            + "\"shape\":[1],\"datatype\":\"UINT8\",\"data\":[1]}]}";

    private static final String TEXT = "{\"INPUT0\":[1],\"X-A\":1,\"own\":true}";

    @Test
    void forwardsWhatThePatternIsFoundIn() throws IOException {
        assertThat(parametersOf("x-|auth", "x-a: 1\r\nAuthorization: Bearer é\r\nOther: 2\r\nX-A: 3\r\n"))
                .containsExactlyInAnyOrderEntriesOf(Map.of(
                        "X-A", new ParameterValue.Text("3"),
                        "x-a", new ParameterValue.Text("1"),
                        "Authorization", new ParameterValue.Text("Bearer é"),
                        "own", new ParameterValue.Bool(true)));
    }

    @Test
    void keepsBlanksAtTheEndOfValues() throws IOException {
        try (RunningFrontend frontend = new RunningFrontend(forwarding("^x-"));
                RawHttpConnection connection = frontend.connect()) {
            String path = "/v2/models/plain/infer";
            connection.post(
                    path, "Content-Type: text/plain  \r\nX-B:  1 \t \r\nX-C:2\r\nX-D: \t\r\nx-b: é \r\n", bytes(BODY));
            // Two at once, in pieces.
            byte[] more = join(
                    bytes("GET /v2/health/live HTTP/1.1\r\nHost: x\r\nX-E: 3 \r\n\r\n"),
                    bytes("POST " + path + " HTTP/1.1\r\nHost: x \r\nX-F: 4   \r\nContent-Length: " + BODY.length()
                            + " \r\n\r\n" + BODY));
            connection
                    .send(Arrays.copyOf(more, more.length - 200))
                    .send(Arrays.copyOfRange(more, more.length - 200, more.length));

            for (int i = 0; i < 3; i++) {
                assertThat(connection.receive().status()).isEqualTo(200);
            }
            assertThat(frontend.server.requests().getFirst().request().parameters())
                    .containsEntry("X-B", new ParameterValue.Text("1 \t "))
                    .containsEntry("X-C", new ParameterValue.Text("2"))
                    .containsEntry("X-D", new ParameterValue.Text(""))
                    .containsEntry("x-b", new ParameterValue.Text("é "));
            assertThat(frontend.server.requests().getLast().request().parameters())
                    .containsEntry("X-F", new ParameterValue.Text("4   "));
        }
    }

    /** The transport makes one length of two, and puts it behind all other headers. */
    @ParameterizedTest
    @CsvSource({"HTTP/1.0, Content-Length:", "HTTP/1.1, X-Length:"})
    void keepsBlanksWhenTheTransportMovesTheLength(String version, String other) throws IOException {
        try (RunningFrontend frontend = new RunningFrontend(forwarding("^x-"));
                RawHttpConnection connection = frontend.connect()) {
            String length = BODY.length() + "\r\n";
            connection.send(bytes("POST /v2/models/plain/infer " + version + "\r\nX-A: 1\r\n" + other + " " + length
                    + "Content-Length: 0" + length + "X-B: 2  \r\nX-C: 3\r\n\r\n" + BODY));

            assertThat(connection.receive().status()).isEqualTo(200);
            assertThat(frontend.server.requests().getFirst().request().parameters())
                    .containsEntry("X-A", new ParameterValue.Text("1"))
                    .containsEntry("X-B", new ParameterValue.Text("2  "))
                    .containsEntry("X-C", new ParameterValue.Text("3"));
        }
    }

    @Test
    void takesEmptyLinesBeforeARequest() throws IOException {
        try (RunningFrontend frontend = new RunningFrontend(forwarding("^x-"));
                RawHttpConnection connection = frontend.connect()) {
            for (int i = 0; i < 1000; i++) {
                connection.send(bytes("\r\n"));
            }
            connection.post("/v2/models/plain/infer", "X-B: 2 \r\n", bytes(BODY));

            assertThat(connection.receive().status()).isEqualTo(200);
            assertThat(frontend.server.requests().getFirst().request().parameters())
                    .containsEntry("X-B", new ParameterValue.Text("2 "));
        }
    }

    @Test
    void forwardsNothingByDefault() throws IOException {
        try (RunningFrontend frontend = new RunningFrontend(RunningFrontend.OPTIONS)) {
            assertThat(post(frontend, "X-B: 1\r\n").status()).isEqualTo(200);
            assertThat(frontend.server.requests().getFirst().request().parameters())
                    .containsOnlyKeys("X-A", "own");
        }
    }

    @Test
    void forwardsHeadersOfRawRequests() throws IOException {
        assertThat(parametersOf("^x", "X-B: 1\r\nInference-Header-Content-Length: 0\r\n"))
                .containsOnly(Map.entry("X-B", new ParameterValue.Text("1")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"sequence_id", "priority", "timeout", "headers", "binary_data_output", "triton_x"})
    void refusesNamesThatMeanSomething(String name) throws IOException {
        try (RunningFrontend frontend = new RunningFrontend(forwarding(".*"))) {
            RawHttpConnection.Response response = post(frontend, name + ": 1\r\n");

            assertThat(response.text())
                    .isEqualTo("{\"error\":\"Header '" + name
                            + "' is reserved for Triton usage and cannot be forwarded.\"}");
            assertThat(response.status()).isEqualTo(400);
            assertThat(response.header("content-type")).isEqualTo("application/json");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"generate", "generate_stream"})
    void forwardsHeadersOfEveryInference(String verb) throws IOException {
        // A long text is read by a worker.
        for (String body : List.of(TEXT, TEXT.replace("1", "1".repeat(2)) + " ".repeat(300 << 10))) {
            try (RunningFrontend frontend = new RunningFrontend(forwarding("x-|auth"));
                    RawHttpConnection connection = frontend.connect()) {
                connection.post(
                        "/v2/models/plain/" + verb,
                        "x-a: 1\r\nAuthorization: Bearer é  \r\nOther: 2\r\nX-A: 3\r\n",
                        bytes(body));

                assertThat(connection.receiveHeader().status()).isEqualTo(200);
                assertThat(frontend.server.requests().getFirst().request().parameters())
                        .containsExactlyInAnyOrderEntriesOf(Map.of(
                                "X-A", new ParameterValue.Text("3"),
                                "x-a", new ParameterValue.Text("1"),
                                "Authorization", new ParameterValue.Text("Bearer é  "),
                                "own", new ParameterValue.Bool(true)));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"generate", "generate_stream"})
    void refusesReservedNamesOfEveryInference(String verb) throws IOException {
        try (RunningFrontend frontend = new RunningFrontend(forwarding(".*"));
                RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response = connection
                    .post("/v2/models/plain/" + verb, "sequence_id: 1\r\n", bytes(TEXT))
                    .receive();

            assertThat(response.text())
                    .isEqualTo("{\"error\":\"Header 'sequence_id' is reserved for Triton usage and cannot be"
                            + " forwarded.\"}");
            assertThat(response.status()).isEqualTo(400);
            assertThat(frontend.server.requests()).isEmpty();
        }
    }

    private static Map<String, ParameterValue> parametersOf(String pattern, String headers) throws IOException {
        try (RunningFrontend frontend = new RunningFrontend(forwarding(pattern))) {
            assertThat(post(frontend, headers).status()).isEqualTo(200);
            return frontend.server.requests().getFirst().request().parameters();
        }
    }

    private static HttpOptions forwarding(String pattern) {
        return RunningFrontend.options(
                http -> http.forwardedHeaders = Optional.of(Pattern.compile(pattern, Pattern.CASE_INSENSITIVE)));
    }

    private static RawHttpConnection.Response post(RunningFrontend frontend, String headers) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection
                    .post("/v2/models/plain/infer", headers, bytes(BODY))
                    .receive();
        }
    }
}
