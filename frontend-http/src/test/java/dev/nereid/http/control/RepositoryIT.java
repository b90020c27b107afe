package dev.nereid.http.control;

import static dev.nereid.http.RawHttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeControl;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Index, load and unload over sockets. */
@Timeout(60)
class RepositoryIT {
    private static final String LOAD = "/v2/repository/models/m/load";
    private static final String UNLOAD = "/v2/repository/models/m/unload";

    private RunningFrontend frontend;

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
    }

    @AfterEach
    void stop() {
        frontend.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "{}", "{\"ready\":false}", "[]", "{\"other\":1}"})
    void listsEveryVersionWithItsStateAndReason(String body) throws IOException {
        frontend.server.setIndex(List.of(
                new ModelStatus("failed", OptionalLong.of(2), ModelStatus.State.UNAVAILABLE, "no \"file\""),
                new ModelStatus("good", OptionalLong.of(1), ModelStatus.State.READY, ""),
                new ModelStatus("new", OptionalLong.empty(), ModelStatus.State.UNKNOWN, ""),
                new ModelStatus("twice", OptionalLong.empty(), ModelStatus.State.UNAVAILABLE, "two of them")));

        RawHttpConnection.Response response = post("/v2/repository/index", body);

        assertThat(response.status()).isEqualTo(200);
        assertThat(response.header("content-type")).isEqualTo("application/json");
        assertThat(response.text())
                .isEqualTo("[{\"name\":\"failed\",\"version\":\"2\",\"state\":\"UNAVAILABLE\","
                        + "\"reason\":\"no \\\"file\\\"\"},"
                        + "{\"name\":\"good\",\"version\":\"1\",\"state\":\"READY\"},"
                        + "{\"name\":\"new\"},"
                        + "{\"name\":\"twice\",\"state\":\"UNAVAILABLE\",\"reason\":\"two of them\"}]");
    }

    @Test
    void listsReadyModelsOnlyIfRequested() throws IOException {
        frontend.server.setIndex(List.of(
                new ModelStatus("failed", OptionalLong.of(2), ModelStatus.State.UNAVAILABLE, ""),
                new ModelStatus("good", OptionalLong.of(1), ModelStatus.State.READY, "")));

        assertThat(post("/v2/repository/any/index", "{\"ready\":true}").text())
                .isEqualTo("[{\"name\":\"good\",\"version\":\"1\",\"state\":\"READY\"}]");

        frontend.server.setIndex(List.of());
        assertThat(post("/v2/repository/index", "{\"ready\":true}").text()).isEqualTo("[]");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "{}", "{\"parameters\":{}}", "[1]"})
    void loadsModels(String body) throws IOException {
        RawHttpConnection.Response response = post(LOAD, body);

        assertThat(response.status()).isEqualTo(200);
        assertThat(response.body()).isEmpty();
        assertThat(frontend.server.control().loads())
                .singleElement()
                .satisfies(load -> assertThat(load.model()).isEqualTo("m"))
                .satisfies(load -> assertThat(load.config()).isEmpty())
                .satisfies(load -> assertThat(load.files()).isEmpty());
    }

    @ParameterizedTest
    @ValueSource(strings = {"%6D", "a%2Fb", "models", "index", "..."})
    void passesNamesAsReceived(String name) throws IOException {
        assertThat(post("/v2/repository/models/" + name + "/load", "").status()).isEqualTo(200);
        assertThat(post("/v2/repository/models/" + name + "/unload", "").status())
                .isEqualTo(200);

        assertThat(frontend.server.control().loads())
                .singleElement()
                .satisfies(load -> assertThat(load.model()).isEqualTo(name));
        assertThat(frontend.server.control().unloads()).containsExactly(new FakeControl.Unload(name, false));
    }

    @Test
    void passesConfigurationAndFiles() throws IOException {
        post(
                LOAD,
                "{\"parameters\":{\"config\":\"{\\\"backend\\\":\\\"x\\\"}\",\"file:1/model.bin\":\"AAEC\\n/w==\","
                        + "\"file:empty\":\"\"}}");

        ModelControl.Load load = frontend.server.control().loads().getFirst();
        assertThat(load.config()).isEqualTo(Optional.of("{\"backend\":\"x\"}"));
        assertThat(load.files()).containsOnlyKeys("1/model.bin", "empty");
        assertThat(load.files()).containsEntry("1/model.bin", ByteBuffer.wrap(new byte[] {0, 1, 2, -1}));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"parameters\":{\"force\":true}} | true",
                "{\"parameters\":{\"force\" : false}} | false",
                "{\"parameters\":{\"force\":true,\"config\":\"{}\",\"file:x\":\"QQ==\"}} | true",
                "{\"parameters\":{\"config\":\"{}\",\"force\":false}} | false",
                "{\"force\":true} | false",
            })
    void passesWhetherALoadIsForced(String body, boolean isForced) throws IOException {
        assertThat(post(LOAD, body).status()).isEqualTo(200);

        assertThat(frontend.server.control().loads())
                .singleElement()
                .satisfies(load -> assertThat(load.isForced()).isEqualTo(isForced))
                .satisfies(load -> assertThat(load.config().isPresent()).isEqualTo(body.contains("config")));
    }

    /** The default content type of curl; parsers of forms limit fields and attributes. */
    @Test
    void readsBodiesThatAreDeclaredAsForms() throws IOException {
        byte[] model = new byte[300_000];
        String body = "{\"parameters\":{\"file:1/model&=%.bin\":\""
                + Base64.getEncoder().encodeToString(model) + "\"}}";
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response = connection
                    .post(LOAD, "Content-Type: application/x-www-form-urlencoded\r\n", bytes(body))
                    .receive();

            assertThat(response.status()).as(response.text()).isEqualTo(200);
        }
        assertThat(frontend.server.control().loads().getFirst().files())
                .containsEntry("1/model&=%.bin", ByteBuffer.wrap(model));
    }

    @Test
    void unloadsDependentsIfRequested() throws IOException {
        assertThat(post(UNLOAD, "").status()).isEqualTo(200);
        assertThat(post(UNLOAD, "{\"parameters\":{\"unload_dependents\":true}}").status())
                .isEqualTo(200);

        assertThat(frontend.server.control().unloads())
                .containsExactly(new FakeControl.Unload("m", false), new FakeControl.Unload("m", true));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "/v2/repository/index | {\"ready\":1} | 400 | Invalid value for 'ready': expected a boolean",
                "/v2/repository/index | x | 500 | failed to parse the request JSON buffer: Invalid value. at 0",
                LOAD + " | x | 500 | failed to parse the request JSON buffer: Invalid value. at 0",
                LOAD + " | {\"parameters\":1} | 500 | attempt to get members for non-object",
                LOAD + " | {\"parameters\":{\"foo\":\"x\"}} | 500 | unexpected error on creating Triton parameter",
                LOAD + " | {\"parameters\":{\"config\":1}} | 500 | attempt to access JSON non-string as string",
                LOAD + " | {\"parameters\":{\"force\":\"true\"}} | 400 |"
                        + " Invalid value for 'force': expected true or false, got ",
                LOAD + " | {\"parameters\":{\"force\":1}} | 400 |"
                        + " Invalid value for 'force': expected true or false, got 1",
                LOAD + " | {\"parameters\":{\"force\":null}} | 400 |"
                        + " Invalid value for 'force': expected true or false, got null",
                LOAD + " | {\"parameters\":{\"force\":trux}} | 500 |"
                        + " failed to parse the request JSON buffer: Invalid value.",
                LOAD + " | {\"parameters\":{\"file:x\":\"A\"}} | 400 | Unable to parse 'file:x': not a text in base64",
                LOAD
                        + " | {\"parameters\":{\"file:x\":\"QQ*==\"}} | 400 | Unable to parse 'file:x': not a text in base64",
                UNLOAD + " | {\"parameters\":{\"unload_dependents\":1}} | 500 |"
                        + " Unable to parse 'unload_dependents': attempt to access JSON non-boolean as boolean",
                "/v2/repository/models/../load | {} | 400 |"
                        + " invalid model name '..', model name must not contain path traversal characters",
                "/v2/repository/r/models/m/load | {} | 501 | 'repository_name' specification is not supported",
                "/v2/repository/r/models/m/unload | {} | 501 | 'repository_name' specification is not supported",
                "/v2/repository/models//load | {} | 404 | Not Found",
                "/v2/repository/models/m/foo | {} | 404 | Not Found",
                "/v2/repository/models/models/x/load | {} | 501 | 'repository_name' specification is not supported",
                "/v2/repository/r/models/../load | {} | 501 | 'repository_name' specification is not supported",
                "/v2/repository/models/x/../m/load | {} | 404 | Not Found",
                "/v2/repository/a/b/index | {} | 404 | Not Found",
                "/v2/repository | {} | 404 | Not Found",
                "/v2/repository/index/ | {} | 404 | Not Found",
            })
    void reportsInvalidRequests(String path, String body, int status, String error) throws IOException {
        RawHttpConnection.Response response = post(path, body);

        assertThat(response.text()).startsWith("{\"error\":\"" + error);
        assertThat(response.status()).isEqualTo(status);
        assertThat(frontend.server.control().loads()).isEmpty();
        assertThat(frontend.server.control().unloads()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {LOAD, UNLOAD})
    void returnsTheErrorOfTheServer(String path) throws IOException {
        frontend.server.control().failWith(ErrorCode.UNAVAILABLE, "explicit model load / unload is not allowed");

        RawHttpConnection.Response response = post(path, "{}");

        assertThat(response.status()).isEqualTo(503);
        assertThat(response.header("content-type")).isEqualTo("application/json");
        assertThat(response.text()).isEqualTo("{\"error\":\"explicit model load / unload is not allowed\"}");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/v2/repository/index", LOAD, UNLOAD})
    void allowsPostOnly(String path) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response =
                    connection.request("GET", path).receive();

            assertThat(response.status()).isEqualTo(405);
            assertThat(response.header("content-type")).isEqualTo("application/json");
            assertThat(response.text()).isEqualTo("{\"error\":\"Method Not Allowed\"}");
        }
    }

    @Test
    void refusesBodiesBeyondTheLimit() throws IOException {
        RawHttpConnection.Response announced = post(LOAD, "\"" + "x".repeat(1 << 20) + "\"");

        assertThat(announced.status()).isEqualTo(400);
        assertThat(announced.text()).startsWith("{\"error\":\"request JSON size of 1048578 bytes exceeds");
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("POST " + LOAD + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"));
            byte[] half = new byte[600_000];
            for (int i = 0; i < 2; i++) {
                connection.send(bytes(Integer.toHexString(half.length) + "\r\n"));
                connection.send(half);
                connection.send(bytes("\r\n"));
            }
            RawHttpConnection.Response chunked =
                    connection.send(bytes("0\r\n\r\n")).receive();
            assertThat(chunked.status()).isEqualTo(400);
            assertThat(chunked.text()).contains("exceeds the maximum allowed input size of 1048576 bytes");
        }
    }

    private RawHttpConnection.Response post(String path, String body) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.post(path, "", bytes(body)).receive();
        }
    }

    @Test
    void anUnexpectedErrorWhileABodyArrivesGetsAResponse() throws IOException {
        LeakCheckingMemory memory = new LeakCheckingMemory();
        TensorMemory broken = new TensorMemory() {
            @Override
            public TensorBuffer allocate(long byteSize) {
                throw new IllegalStateException("broken");
            }

            @Override
            public long bytesInUse() {
                return 0;
            }
        };
        try (RunningFrontend other = new RunningFrontend(RunningFrontend.OPTIONS, memory, broken);
                RawHttpConnection connection = other.connect()) {
            RawHttpConnection.Response response =
                    connection.post(LOAD, "", bytes("{}")).receive();

            assertThat(response.status()).isEqualTo(500);
            assertThat(response.text()).isEqualTo("{\"error\":\"internal error\"}");
        }
    }
}
