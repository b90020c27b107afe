package dev.nereid.http.control;

import static dev.nereid.http.RawHttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.testkit.FakeStatistics;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Statistics over sockets. */
@Timeout(60)
class StatisticsIT {
    /** The members after {@code execution_count}. */
    private static final String REST = ",\"inference_stats\":{\"success\":{\"count\":4,\"ns\":1045713},"
            + "\"fail\":{\"count\":1,\"ns\":20},\"queue\":{\"count\":4,\"ns\":676129},"
            + "\"compute_input\":{\"count\":4,\"ns\":30},\"compute_infer\":{\"count\":4,\"ns\":346043},"
            + "\"compute_output\":{\"count\":4,\"ns\":40},\"cache_hit\":{\"count\":0,\"ns\":0},"
            + "\"cache_miss\":{\"count\":0,\"ns\":0}},\"response_stats\":{\"0\":"
            + "{\"compute_infer\":{\"count\":6,\"ns\":60},\"compute_output\":{\"count\":5,\"ns\":50},"
            + "\"success\":{\"count\":4,\"ns\":40},\"fail\":{\"count\":3,\"ns\":30},"
            + "\"empty_response\":{\"count\":2,\"ns\":20},\"cancel\":{\"count\":1,\"ns\":10}}},\"batch_stats\":["
            + "{\"batch_size\":1,\"compute_input\":{\"count\":0,\"ns\":0},"
            + "\"compute_infer\":{\"count\":2,\"ns\":50},\"compute_output\":{\"count\":0,\"ns\":0}},"
            + "{\"batch_size\":5,\"compute_input\":{\"count\":0,\"ns\":0},"
            + "\"compute_infer\":{\"count\":0,\"ns\":0},\"compute_output\":{\"count\":0,\"ns\":0}}],"
            + "\"memory_usage\":[{\"type\":\"CPU\",\"id\":0,\"byte_size\":1000},"
            + "{\"type\":\"CPU_PINNED\",\"id\":0,\"byte_size\":200},"
            + "{\"type\":\"GPU\",\"id\":1,\"byte_size\":5000000000}]}";

    private static final String ONE = figures("a", 1, 6);
    private static final String THREE = figures("a", 3, 0);
    private static final String OTHER = figures("stats", 1, 2);

    private RunningFrontend frontend;

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
        frontend.server.setStatistics(
                List.of(FakeStatistics.of("a", 1, 6), FakeStatistics.of("a", 3, 0), FakeStatistics.of("stats", 1, 2)));
    }

    @AfterEach
    void stop() {
        frontend.close();
    }

    private static String figures(String name, long version, long executions) {
        return "{\"name\":\"" + name + "\",\"version\":\"" + version
                + "\",\"last_inference\":1795205332817,\"inference_count\":7,\"execution_count\":" + executions + REST;
    }

    private RawHttpConnection.Response get(String method, String path) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.request(method, path).receive();
        }
    }

    private void assertStatistics(String path, String... models) throws IOException {
        RawHttpConnection.Response response = get("GET", path);
        assertThat(response.status()).isEqualTo(200);
        assertThat(response.header("content-type")).isEqualTo("application/json");
        assertThat(response.text()).isEqualTo("{\"model_stats\":[" + String.join(",", models) + "]}");
    }

    @Test
    void returnsTheStatisticsOfModels() throws IOException {
        assertStatistics("/v2/models/stats", ONE, THREE, OTHER);
        assertStatistics("/v2/models/a/stats", ONE, THREE);
        assertStatistics("/v2/models/a/versions/3/stats", THREE);
        assertStatistics("/v2/models/a/versions/latest/stats", ONE, THREE);
        assertStatistics("/v2/models/stats/stats", OTHER);
        frontend.server.setStatistics(List.of());
        assertStatistics("/v2/models/stats");
    }

    @Test
    void reportsModelsWithoutStatistics() throws IOException {
        RawHttpConnection.Response response = get("GET", "/v2/models/nope/stats");

        assertThat(response.status()).isEqualTo(400);
        assertThat(response.header("content-type")).isEqualTo("application/json");
        assertThat(response.text()).isEqualTo("{\"error\":\"requested model 'nope' is not available\"}");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/v2/models/stats", "/v2/models/a/stats"})
    void respondsBeforeTheConnectionIsClosedForABodyOfUnknownLength(String path) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("GET " + path + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\n0\r\n\r\n"));

            RawHttpConnection.Response response = connection.receive();

            assertThat(response.status()).isEqualTo(200);
            assertThat(response.header("connection")).isEqualTo("close");
            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    @ParameterizedTest
    @CsvSource({"POST, /v2/models/a/stats", "POST, /v2/models/stats", "DELETE, /v2/models/a/versions/1/stats"})
    void allowsGetOnly(String method, String path) throws IOException {
        RawHttpConnection.Response response = get(method, path);

        assertThat(response.status()).isEqualTo(405);
        assertThat(response.header("content-type")).isEqualTo("application/json");
        assertThat(response.text()).isEqualTo("{\"error\":\"Method Not Allowed\"}");
    }
}
