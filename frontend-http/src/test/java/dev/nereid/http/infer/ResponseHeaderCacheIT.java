package dev.nereid.http.infer;

import static dev.nereid.http.RawHttpConnection.bytes;
import static dev.nereid.http.RawHttpConnection.join;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests repeated responses over connections, with headers that are rendered once. The flags are those of the start
 * script.
 */
@Timeout(60)
class ResponseHeaderCacheIT {
    /** Read by Vert.x for each connection. */
    private static final String RENDERED_ONCE = "vertx.cacheImmutableHttpResponseHeaders";

    private static final String PLAIN = "/v2/models/plain/infer";
    private static String before = "";

    private final Map<Integer, RawHttpConnection.Response> firstOfSize = new HashMap<>();
    private RunningFrontend frontend;

    @BeforeAll
    static void renderOnce() {
        before = System.getProperty(RENDERED_ONCE, "");
        System.setProperty(RENDERED_ONCE, "true");
    }

    @AfterAll
    static void leaveAsItWas() {
        if (before.isEmpty()) {
            System.clearProperty(RENDERED_ONCE);
        } else {
            System.setProperty(RENDERED_ONCE, before);
        }
    }

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
    }

    @AfterEach
    void close() {
        frontend.close();
    }

    @Test
    void areRightBetweenOtherResponsesOnOneConnection() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            for (int round = 0; round < 5; round++) {
                checkSize(connection, 3, round);
                checkError(connection);
                checkSize(connection, 3, round + 50);
                checkSize(connection, 5, round);
                checkText(connection, round);
                checkSize(connection, 0, round);
                checkId(connection, round);
                checkSize(connection, 1_000, round);
                checkSize(connection, 5_000, round); // is not kept
                checkHealth(connection);
            }
        }
    }

    @Test
    void areRightIfRequestsDoNotWaitForThem() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            for (int round = 0; round < 5; round++) {
                sendSize(connection, 3, round);
                sendSize(connection, 5, round);
                connection.request("GET", "/v2/models/nope");
                sendSize(connection, 3, round + 1);

                receiveSize(connection, 3, round);
                receiveSize(connection, 5, round);
                assertThat(connection.receive().status()).isEqualTo(404);
                receiveSize(connection, 3, round + 1);
            }
        }
    }

    @Test
    void cacheNoHeaderOfOneConnectionOnly() throws IOException {
        for (int round = 0; round < 4; round++) {
            try (RawHttpConnection connection = frontend.connect();
                    RawHttpConnection closing = frontend.connect()) {
                checkSize(connection, 3, round);
                closing.post(
                        PLAIN, "Connection: close\r\n" + jsonLength(json(3, "")), join(json(3, ""), content(3, 9)));
                RawHttpConnection.Response last = closing.receive();
                assertThat(last.header("connection")).isEqualTo("close");
                assertThat(tail(last, 3)).isEqualTo(content(3, 9));
                assertThat(closing.readToTheEnd()).isZero();
                checkSize(connection, 3, round + 1);
            }
        }
    }

    private static byte[] json(int size, String id) {
        return bytes("{" + id + "\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"UINT8\",\"shape\":[" + size
                + "],\"parameters\":{\"binary_data_size\":" + size
                + "}}],\"parameters\":{\"binary_data_output\":true}}");
    }

    private static String jsonLength(byte[] json) {
        return "Inference-Header-Content-Length: " + json.length + "\r\n";
    }

    private static byte[] content(int size, int first) {
        byte[] content = new byte[size];
        for (int i = 0; i < size; i++) {
            content[i] = (byte) (first + i);
        }
        return content;
    }

    private static byte[] tail(RawHttpConnection.Response answer, int size) {
        return Arrays.copyOfRange(answer.body(), answer.body().length - size, answer.body().length);
    }

    private void checkSize(RawHttpConnection connection, int size, int first) throws IOException {
        sendSize(connection, size, first);
        receiveSize(connection, size, first);
    }

    private static void sendSize(RawHttpConnection connection, int size, int first) throws IOException {
        byte[] json = json(size, "");
        connection.post(PLAIN, jsonLength(json), join(json, content(size, first)));
    }

    /** The answer is as that of the first request of its size, of which nothing was known, but for the content. */
    private void receiveSize(RawHttpConnection connection, int size, int first) throws IOException {
        RawHttpConnection.Response answer = connection.receive();
        String text = text(answer, size);
        RawHttpConnection.Response before = firstOfSize.getOrDefault(size, answer);
        firstOfSize.put(size, before);

        assertThat(answer.status()).isEqualTo(200);
        assertThat(answer.headers()).isEqualTo(before.headers());
        assertThat(text).isEqualTo(text(before, size)).contains("\"shape\":[" + size + "]");
        assertThat(tail(answer, size)).isEqualTo(content(size, first));
        if (size > 0) {
            assertThat(answer.header("content-type")).isEqualTo("application/octet-stream");
            assertThat(answer.header("inference-header-content-length")).isEqualTo(String.valueOf(text.length()));
        }
    }

    private static String text(RawHttpConnection.Response answer, int size) {
        return answer.text().substring(0, answer.body().length - size);
    }

    private static void checkId(RawHttpConnection connection, int id) throws IOException {
        byte[] json = json(3, "\"id\":\"" + id + "\",");
        RawHttpConnection.Response answer = connection
                .post(PLAIN, jsonLength(json), join(json, content(3, id)))
                .receive();

        assertThat(text(answer, 3)).contains("\"id\":\"" + id + "\"");
        assertThat(tail(answer, 3)).isEqualTo(content(3, id));
    }

    private static void checkText(RawHttpConnection connection, int first) throws IOException {
        RawHttpConnection.Response answer = connection
                .post(
                        PLAIN,
                        "",
                        bytes("{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"UINT8\",\"shape\":[2],\"data\":["
                                + first + ",7]}]}"))
                .receive();

        assertThat(answer.status()).isEqualTo(200);
        assertThat(answer.header("content-type")).isEqualTo("application/json");
        assertThat(answer.headers()).doesNotContainKey("inference-header-content-length");
        assertThat(answer.text()).contains("\"data\":[" + first + ",7]");
    }

    private static void checkError(RawHttpConnection connection) throws IOException {
        RawHttpConnection.Response answer =
                connection.post("/v2/models/nope/infer", "", bytes("{}")).receive();

        assertThat(answer.status()).isEqualTo(404);
        assertThat(answer.header("content-type")).isEqualTo("text/plain");
        assertThat(answer.headers()).doesNotContainKey("inference-header-content-length");
        assertThat(answer.text()).startsWith("{\"error\":");
    }

    private static void checkHealth(RawHttpConnection connection) throws IOException {
        RawHttpConnection.Response answer =
                connection.request("GET", "/v2/health/live").receive();

        assertThat(answer.status()).isEqualTo(200);
        assertThat(answer.body()).isEmpty();
    }
}
