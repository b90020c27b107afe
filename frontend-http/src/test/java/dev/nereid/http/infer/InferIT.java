package dev.nereid.http.infer;

import static dev.nereid.http.RawHttpConnection.bytes;
import static dev.nereid.http.RawHttpConnection.join;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests inference requests over real sockets. It covers request bodies, response bodies, and the errors of the front
 * end.
 */
@Tag("slow")
class InferIT {
    private static final String INFER = "/v2/models/id/infer";
    private static final String ONE_TO_FOUR =
            "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}]}";
    private static final String BINARY_OUT = "\"parameters\":{\"binary_data_output\":true}";

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
    void returnsJsonForJson() throws IOException {
        RawHttpConnection.Response response = infer("", bytes("{\"id\":\"é\"," + ONE_TO_FOUR.substring(1)));

        assertThat(response.status()).isEqualTo(200);
        assertThat(response.header("content-type")).isEqualTo("application/json");
        assertThat(response.text())
                .isEqualTo("{\"id\":\"é\",\"model_name\":\"id\",\"model_version\":\"1\",\"outputs\":[{\"name\":"
                        + "\"OUTPUT0\",\"datatype\":\"FP32\",\"shape\":[1,4],\"data\":[1.0,2.0,3.0,4.0]}]}");
    }

    @ParameterizedTest
    @ValueSource(ints = {4, 1024, 4096, 4100, 70_000, 600_000, 5_000_000})
    void returnsBytesForBytes(int size) throws IOException {
        byte[] data = randomBytes(size);
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1," + size / 4
                + "],\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":" + size + "}}]," + BINARY_OUT + "}";

        RawHttpConnection.Response response = infer(jsonLength(json), join(bytes(json), data));

        String header =
                "{\"model_name\":\"id\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"OUTPUT0\",\"datatype\":"
                        + "\"FP32\",\"shape\":[1," + size / 4 + "],\"parameters\":{\"binary_data_size\":" + size
                        + "}}]}";
        assertThat(response.status()).isEqualTo(200);
        assertThat(response.header("content-type")).isEqualTo("application/octet-stream");
        assertThat(response.header("inference-header-content-length")).isEqualTo(Integer.toString(header.length()));
        assertThat(response.body()).isEqualTo(join(bytes(header), data));
    }

    @Test
    void servesTheSameHeaderWithOtherBytes() throws IOException {
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,2],\"datatype\":\"FP32\",\"parameters\":"
                + "{\"binary_data_size\":8}}]," + BINARY_OUT + "}";
        try (RawHttpConnection connection = frontend.connect()) {
            byte[][] sent = new byte[20][];
            for (int i = 0; i < sent.length; i++) { // in a pipeline
                sent[i] = randomBytes(8 + i % 5 / 4);
                connection.post(INFER, jsonLength(json), join(bytes(json), sent[i]));
            }
            for (byte[] data : sent) {
                RawHttpConnection.Response response = connection.receive();
                if (data.length == 8) {
                    assertThat(response.text()).contains("\"binary_data_size\":8}}]}");
                    assertThat(Arrays.copyOfRange(response.body(), response.body().length - 8, response.body().length))
                            .isEqualTo(data);
                } else {
                    assertThat(response.status()).isEqualTo(400);
                    assertThat(response.text()).contains("unexpected additional input data for model 'id'");
                }
            }
        }
    }

    /** A {@code Connection} header of a response does not appear in the next one, which is the same otherwise. */
    @Test
    void announcesCloseToOneClientOnly() throws IOException {
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,2],\"datatype\":\"FP32\",\"parameters\":"
                + "{\"binary_data_size\":8}}]," + BINARY_OUT + "}";
        byte[] body = join(bytes(json), randomBytes(8));
        RawHttpConnection.Response first = infer(jsonLength(json), body);
        RawHttpConnection.Response second = infer(jsonLength(json), body); // a repeated response is cached

        RawHttpConnection.Response closing = infer(jsonLength(json) + "Connection: close\r\n", body);
        RawHttpConnection.Response old;
        try (RawHttpConnection connection = frontend.connect()) {
            old = connection
                    .send(join(
                            bytes("POST " + INFER + " HTTP/1.0\r\nConnection: keep-alive\r\n" + jsonLength(json)
                                    + "Content-Length: " + body.length + "\r\n\r\n"),
                            body))
                    .receive();
        }
        RawHttpConnection.Response last = infer(jsonLength(json), body);

        assertThat(first.headers()).doesNotContainKey("connection");
        assertThat(closing.header("connection")).isEqualTo("close");
        assertThat(old.header("connection")).isEqualTo("keep-alive");
        assertThat(second.headers()).isEqualTo(first.headers());
        assertThat(last.headers()).isEqualTo(first.headers());
        for (RawHttpConnection.Response response : List.of(first, second, closing, old, last)) {
            assertThat(response.status()).isEqualTo(200);
            assertThat(response.body()).isEqualTo(first.body());
            assertThat(response.header("content-length")).isEqualTo(Integer.toString(first.body().length));
        }
    }

    @Test
    void findsTheModelOfEachPath() throws IOException {
        for (int i = 0; i < 300; i++) {
            String model = i % 3 == 0 ? "id" : "m" + i;
            RawHttpConnection.Response response = post("/v2/models/" + model + "/infer", "", bytes(ONE_TO_FOUR));

            assertThat(response.status()).as(model).isEqualTo(i % 3 == 0 ? 200 : 404);
            assertThat(response.text()).contains(i % 3 == 0 ? "\"model_name\":\"id\"" : "'" + model + "'");
        }
    }

    @Test
    void mixesJsonAndBytesBothWays() throws IOException {
        byte[] large = randomBytes(100_000);
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[2],\"datatype\":\"UINT8\",\"data\":[1,2]},"
                + "{\"name\":\"INPUT1\",\"shape\":[100000],\"datatype\":\"UINT8\",\"parameters\":{\"binary_data_size\":"
                + "100000}},{\"name\":\"INPUT2\",\"shape\":[1],\"datatype\":\"UINT8\",\"data\":[3]}],\"outputs\":["
                + "{\"name\":\"OUTPUT0\"},{\"name\":\"OUTPUT1\",\"parameters\":{\"binary_data\":true}},"
                + "{\"name\":\"OUTPUT2\",\"parameters\":{\"binary_data\":true}}]}";

        RawHttpConnection.Response response =
                post("/v2/models/plain/infer", jsonLength(json), join(bytes(json), large));

        int header = Integer.parseInt(response.header("inference-header-content-length"));
        assertThat(new String(response.body(), 0, header, StandardCharsets.UTF_8))
                .endsWith("\"outputs\":[{\"name\":\"OUTPUT0\",\"datatype\":\"UINT8\",\"shape\":[2],\"data\":[1,2]},"
                        + "{\"name\":\"OUTPUT1\",\"datatype\":\"UINT8\",\"shape\":[100000],\"parameters\":"
                        + "{\"binary_data_size\":100000}},{\"name\":\"OUTPUT2\",\"datatype\":\"UINT8\",\"shape\":[1],"
                        + "\"parameters\":{\"binary_data_size\":1}}]}");
        assertThat(Arrays.copyOfRange(response.body(), header, response.body().length))
                .isEqualTo(join(large, new byte[] {3}));
    }

    @Test
    void acceptsARawBody() throws IOException {
        RawHttpConnection.Response response =
                post("/v2/models/plain/infer", "Inference-Header-Content-Length: 0\r\n", new byte[] {1, 2, 3});

        assertThat(response.header("content-type")).isEqualTo("application/octet-stream");
        assertThat(response.text()).endsWith("{\"binary_data_size\":3}}]}\u0001\u0002\u0003");
    }

    @Test
    void readsAnEmptyBodyAsNoData() throws IOException {
        for (RawHttpConnection.Response response : List.of(infer("", new byte[0]), exchange("POST", INFER))) {
            assertThat(response.status()).isEqualTo(200);
            assertThat(response.header("content-type")).isEqualTo("application/json");
            assertThat(response.text()).endsWith("\"shape\":[1,0],\"parameters\":{\"binary_data_size\":0}}]}");
        }
    }

    @Test
    void acceptsChunkedBodies() throws IOException {
        StringBuilder body = new StringBuilder();
        for (int i = 0; i < ONE_TO_FOUR.length(); i++) {
            body.append("1\r\n").append(ONE_TO_FOUR.charAt(i)).append("\r\n");
        }

        RawHttpConnection.Response response = inferChunked("", bytes(body + "0\r\n\r\n"));

        assertThat(response.text()).contains("[1.0,2.0,3.0,4.0]");
    }

    @Test
    void acceptsLargeChunkedBodies() throws IOException {
        byte[] data = randomBytes(3_000_000);
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,750000],\"datatype\":\"FP32\",\"parameters\":"
                + "{\"binary_data_size\":3000000}}]," + BINARY_OUT + "}";
        byte[] body = join(bytes(json), data);

        RawHttpConnection.Response response = inferChunked(
                jsonLength(json), join(bytes(Integer.toHexString(body.length) + "\r\n"), body, bytes("\r\n0\r\n\r\n")));

        assertThat(response.body()).endsWith(data);
    }

    @Test
    void acceptsBodiesByteByByte() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes(
                    "POST " + INFER + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + ONE_TO_FOUR.length() + "\r\n\r\n"));
            for (byte next : bytes(ONE_TO_FOUR)) {
                connection.send(new byte[] {next});
            }

            assertThat(connection.receive().text()).contains("[1.0,2.0,3.0,4.0]");
        }
    }

    @Test
    void sendsContinue() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("POST " + INFER + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
                    + ONE_TO_FOUR.length() + "\r\n\r\n"));

            assertThat(connection.receive().status()).isEqualTo(100);
            assertThat(connection.send(bytes(ONE_TO_FOUR)).receive().status()).isEqualTo(200);
        }
    }

    @Test
    void writesStringsAsTheyAre() throws IOException {
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1],\"datatype\":\"BYTES\",\"parameters\":"
                + "{\"binary_data_size\":6}}]}";

        RawHttpConnection.Response response =
                post("/v2/models/bytes/infer", jsonLength(json), join(bytes(json), new byte[] {
                    2, 0, 0, 0, (byte) 0xFF, (byte) 0xFE
                }));

        assertThat(response.body())
                .endsWith(join(bytes("\"data\":[\""), new byte[] {(byte) 0xFF, (byte) 0xFE}, bytes("\"]}]}")));
    }

    @Test
    void doesNotReadBeyondATruncatedString() throws IOException {
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1],\"datatype\":\"BYTES\",\"parameters\":"
                + "{\"binary_data_size\":6}}]}";
        byte[] body = join(bytes(json), new byte[] {100, 0, 0, 0, 'a', 'b'});

        RawHttpConnection.Response response = post("/v2/models/bytes/infer", jsonLength(json), body);

        assertThat(response.status()).isEqualTo(500);
        assertThat(response.text()).startsWith("{\"error\":\"output 'OUTPUT0': the string at byte 0 is truncated");
    }

    @Test
    void writesParametersOfTheResponse() throws IOException {
        frontend.server.add(FakeModel.identity("id", DataType.FP32, 8, -1)
                .responding(
                        received -> received.respond(List.of(), Map.of("a", new ParameterValue.Text("x\n")), true)));

        assertThat(infer("", bytes(ONE_TO_FOUR)).text())
                .isEqualTo(
                        "{\"model_name\":\"id\",\"model_version\":\"1\",\"parameters\":{\"a\":\"x\\n\"},\"outputs\":[]}");
    }

    @Test
    void doesNotReadMemoryOfADevice() throws IOException {
        Tensor tensor = Tensor.of(
                DataType.INT8,
                Shape.of(1),
                MemorySegment.ofArray(new byte[1]),
                new MemoryPlace(MemoryPlace.Kind.GPU, 0));
        frontend.server.add(FakeModel.identity("id", DataType.INT8, 0, -1)
                .responding(received -> received.respond(List.of(new NamedTensor("Y", tensor)), Map.of(), true)));

        assertThat(infer("", bytes(ONE_TO_FOUR)).status()).isEqualTo(500);
    }

    @ParameterizedTest
    @EnumSource(ErrorCode.class)
    void returnsEveryKindOfError(ErrorCode code) throws IOException {
        frontend.server.add(FakeModel.identity("id", DataType.FP32, 8, -1)
                .responding(received -> received.fail(code, "no \"luck\"")));

        RawHttpConnection.Response response = infer("", bytes(ONE_TO_FOUR));

        Map<ErrorCode, Integer> statuses = Map.of(
                ErrorCode.INTERNAL, 500,
                ErrorCode.NOT_FOUND, 404,
                ErrorCode.UNAVAILABLE, 503,
                ErrorCode.UNSUPPORTED, 501);
        assertThat(response.status()).isEqualTo(statuses.getOrDefault(code, 400));
        assertThat(response.text()).isEqualTo("{\"error\":\"no \\\"luck\\\"\"}");
    }

    @Test
    void reportsAnUnknownModelWhateverTheBody() throws IOException {
        assertError(
                post("/v2/models/nope/infer", "", bytes("garbage")),
                404,
                "Request for unknown model: 'nope' is not found");
        assertError(
                post("/v2/models/id/versions/9/infer", "", new byte[1000]),
                404,
                "Request for unknown model: 'id' version 9 is not found");
    }

    @Test
    void refusesDecoupledModels() throws IOException {
        frontend.server.add(FakeModel.identity("many", DataType.FP32, 0, -1).decoupled());

        assertError(
                post("/v2/models/many/infer", "", bytes(ONE_TO_FOUR)),
                501,
                "HTTP end point doesn't support models with decoupled transaction policy");
    }

    @ParameterizedTest
    @CsvSource({"0", "1", "2"})
    void requiresOneResponse(int responses) throws IOException {
        frontend.server.add(FakeModel.identity("id", DataType.FP32, 8, -1).responding(received -> {
            for (int i = 0; i < responses; i++) {
                received.respond(List.of(), Map.of(), false);
            }
            received.end();
        }));

        assertError(infer("", bytes(ONE_TO_FOUR)), 500, "expected a single response, got " + responses);
    }

    @ParameterizedTest
    @ValueSource(strings = {"br", "GZIP", "gzip, gzip"})
    void refusesContentCodings(String coding) throws IOException {
        RawHttpConnection.Response response = infer("Content-Encoding: " + coding + "\r\n", bytes(ONE_TO_FOUR));

        assertError(response, 501, "Unsupported compression type");
        assertThat(response.header("accept-encoding")).isEqualTo("gzip, deflate");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "abc | Unable to parse Inference-Header-Content-Length, got: abc",
                "-1 | inference header size should be in range (0, 78), got: -1",
                "-12 | inference header size should be in range (0, 78), got: -12",
                "10000 | inference header size should be in range (0, 78), got: 10000",
                "99999999999 | Unable to parse Inference-Header-Content-Length, value is out of range [ -2147483648, 2147483647 ], got: 99999999999",
            })
    void refusesHeaderLengths(String length, String error) throws IOException {
        String body = ONE_TO_FOUR.substring(0, 78);

        assertError(infer("Inference-Header-Content-Length: " + length + "\r\n", bytes(body)), 400, error);
        if (!length.startsWith("-") && length.length() > 4) {
            assertThat(inferChunked(
                                    "Inference-Header-Content-Length: " + length + "\r\n",
                                    bytes("4e\r\n" + body + "\r\n0\r\n\r\n"))
                            .text())
                    .startsWith("{\"error\":\"" + error);
        }
    }

    @Test
    void readsTheNumberThatAHeaderLengthBeginsWith() throws IOException {
        assertThat(infer("Inference-Header-Content-Length: 12abc\r\n", bytes(ONE_TO_FOUR))
                        .text())
                .contains("at 12");
    }

    @Test
    void limitsJsonByItsDeclaredLength() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("POST " + INFER + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n"));

            assertError(
                    connection.receive(),
                    400,
                    "request JSON size of 1048577 bytes exceeds the maximum allowed input size of 1048576 bytes. Use"
                            + " --http-max-input-size to increase the limit.");
            assertThat(frontend.memory.bytesInUse()).isZero();
        }
    }

    @Test
    void keepsTheConnectionAfterABodyThatIsALittleTooLarge() throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(INFER, "", new byte[(1 << 20) + 1]);
            assertThat(connection.receive().status()).isEqualTo(400);

            assertThat(connection.post(INFER, "", bytes(ONE_TO_FOUR)).receive().status())
                    .isEqualTo(200);
        }
    }

    @Test
    void limitsBytesAndRawDataByTheirDeclaredLength() throws IOException {
        assertThat(announce("Inference-Header-Content-Length: 10\r\nContent-Length: 16777217\r\n")
                        .text())
                .isEqualTo("{\"error\":\"request has a size (16777217 bytes) that exceeds the maximum allowed value of"
                        + " 16777216 bytes. Use --http-max-request-size to increase the limit.\"}");
        assertThat(announce("Inference-Header-Content-Length: 0\r\nContent-Length: 16777217\r\n")
                        .text())
                .isEqualTo("{\"error\":\"Raw input has a byte_size (16777217 bytes) that exceeds the maximum allowed"
                        + " value of 16777216 bytes. Use --http-max-request-size to increase the limit.\"}");
        assertThat(announce("Inference-Header-Content-Length: 1048577\r\nContent-Length: 1048577\r\n")
                        .text())
                .contains("request JSON size of 1048577 bytes");
    }

    @Test
    void limitsTheWholeBodyAsJsonByItsHeader() throws IOException {
        try (RunningFrontend strict =
                new RunningFrontend(RunningFrontend.options(http -> http.maxRequestBytes = 1 << 20))) {
            String advice =
                    " bytes) that exceeds the maximum allowed value of 1048576 bytes. Use --http-max-input-size to"
                            + " increase the limit.";
            for (String path : List.of(INFER, "/v2/models/plain/infer")) {
                assertError(post(strict, path, jsonLength(0), 1), 400, "Raw input has a byte_size (1048577" + advice);
                assertError(post(strict, path, jsonLength(10), 1), 400, "request has a size (1048577" + advice);
                assertError(post(strict, path, "", 1), 400, "request JSON size of 1048577 bytes exceeds the maximum");
            }
            assertThat(post(strict, "/v2/models/plain/infer", jsonLength(0), 0).status())
                    .isEqualTo(200);
            for (String path :
                    List.of("/v2/models/id/generate", "/v2/repository/models/id/load", "/v2/repository/index")) {
                assertError(post(strict, path, "", 1), 400, "request JSON size of 1048577 bytes exceeds the maximum");
            }
        }
    }

    private static String jsonLength(int length) {
        return "Inference-Header-Content-Length: " + length + "\r\n";
    }

    private static RawHttpConnection.Response post(RunningFrontend frontend, String path, String headers, int excess)
            throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.post(path, headers, new byte[(1 << 20) + excess]).receive();
        }
    }

    /** A socket that is closed while data arrives is reset, which hides the response from its client. */
    @ParameterizedTest
    @CsvSource({"Content-Length: 17825792, keep-alive", "Transfer-Encoding: chunked, close"})
    void readsSixteenMebibytesBeyondTheLimit(String header, String connectionHeader) throws Exception {
        byte[] piece = new byte[1 << 20];
        boolean isChunked = header.contains("chunked");
        try (RunningFrontend strict =
                        new RunningFrontend(RunningFrontend.options(http -> http.maxRequestBytes = 1 << 20));
                RawHttpConnection connection = strict.connect()) {
            connection.send(bytes("POST " + INFER + " HTTP/1.1\r\nHost: x\r\n" + header + "\r\n\r\n"));
            for (int i = 0; i < 17; i++) {
                connection.send(isChunked ? join(bytes("100000\r\n"), piece, bytes("\r\n")) : piece);
            }

            RawHttpConnection.Response response = connection.receive();
            assertThat(response.status()).isEqualTo(400);
            assertThat(response.headers().getOrDefault("connection", "keep-alive"))
                    .isEqualTo(connectionHeader);
            if (isChunked) {
                connection.send(bytes("0\r\n\r\n"));
                assertThat(connection.isClosedByServer()).isTrue();
            } else {
                assertThat(connection
                                .post(INFER, "", bytes(ONE_TO_FOUR))
                                .receive()
                                .status())
                        .isEqualTo(200);
            }
        }
    }

    @Test
    void closesTheConnectionOfABodyThatIsMuchTooLarge() throws IOException {
        try (RunningFrontend strict =
                        new RunningFrontend(RunningFrontend.options(http -> http.maxRequestBytes = 1 << 20));
                RawHttpConnection connection = strict.connect()) {
            connection.send(bytes("POST " + INFER + " HTTP/1.1\r\nHost: x\r\nContent-Length: 17825793\r\n\r\n"));

            RawHttpConnection.Response response = connection.receive();

            assertThat(response.status()).isEqualTo(400);
            assertThat(response.header("connection")).isEqualTo("close");
        }
    }

    @Test
    void limitsJsonThatComesInChunks() throws IOException {
        String chunk = "40000\r\n" + " ".repeat(0x40000) + "\r\n";
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("POST " + INFER + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + chunk.repeat(5) + "0\r\n\r\n"));

            assertThat(connection.receive().text()).startsWith("{\"error\":\"request JSON size of ");
        }
    }

    @Test
    void limitsTheNumberOfSmallChunks() throws IOException {
        assertError(
                inferChunked("", bytes("1\r\n \r\n".repeat(65537) + "0\r\n\r\n")),
                400,
                "Chunked request body exceeds maximum of 65536 non-empty chunks. Send fewer or larger HTTP chunks.");
    }

    @Test
    void acceptsAnyNumberOfLargeChunks() throws IOException {
        int size = 65600 << 10;
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[" + size + "],\"datatype\":\"UINT8\","
                + "\"parameters\":{\"binary_data_size\":" + size + "}}]," + BINARY_OUT + "}";
        String header = "POST /v2/models/plain/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n";
        byte[] chunks = bytes(("400\r\n" + "x".repeat(1024) + "\r\n").repeat(64));
        try (RunningFrontend large =
                        new RunningFrontend(RunningFrontend.options(http -> http.maxRequestBytes = 1 << 30));
                RawHttpConnection connection = large.connect()) {
            connection.send(bytes(header + jsonLength(json) + "\r\n"));
            connection.send(bytes(Integer.toHexString(json.length()) + "\r\n" + json + "\r\n"));
            for (int sent = 0; sent < size; sent += 64 << 10) {
                connection.send(chunks);
            }

            RawHttpConnection.Response response =
                    connection.send(bytes("0\r\n\r\n")).receive();

            assertThat(response.status()).isEqualTo(200);
        }
    }

    @Test
    void reportsThatThereIsNoMemory() throws IOException {
        try (RunningFrontend poor = new RunningFrontend(RunningFrontend.OPTIONS, new LeakCheckingMemory(1000));
                RawHttpConnection connection = poor.connect()) {
            connection.post(INFER, "", bytes(ONE_TO_FOUR + " ".repeat(1000)));

            assertThat(connection.receive().status()).isEqualTo(503);
        }
    }

    @Test
    void findsErrorsOfTheBody() throws IOException {
        assertError(
                infer("", bytes("{\"inputs\":[")),
                500,
                "failed to parse the request JSON buffer: Invalid value. at 11");
        assertError(
                infer("", bytes(ONE_TO_FOUR.replace("[1,2,3,4]", "[1,2,3]"))),
                400,
                "Failed to parse 'data' field: shape does not match true shape");
        assertError(
                infer("Inference-Header-Content-Length: 78\r\n", bytes(ONE_TO_FOUR + "zz")),
                500,
                "failed to parse the request JSON buffer: Missing a comma or '}' after an object member. at 78");
    }

    @Test
    void sendsLargeOutputsOfOtherMemory() throws IOException {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment data = arena.allocate(1_000_000);
            data.fill((byte) 7);
            frontend.server.add(FakeModel.identity("id", DataType.FP32, 8, -1)
                    .responding(received -> received.respond(
                            List.of(new NamedTensor("Y", Tensor.of(DataType.INT8, Shape.of(1_000_000), data))),
                            Map.of(),
                            true)));
            String json = "{" + BINARY_OUT + "," + ONE_TO_FOUR.substring(1);

            RawHttpConnection.Response response = infer("", bytes(json));

            assertThat(response.body()).endsWith(data.toArray(ValueLayout.JAVA_BYTE));
        }
    }

    private RawHttpConnection.Response infer(String headers, byte[] body) throws IOException {
        return post(INFER, headers, body);
    }

    private RawHttpConnection.Response post(String path, String headers, byte[] body) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.post(path, headers, body).receive();
        }
    }

    private RawHttpConnection.Response exchange(String method, String path) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.request(method, path).receive();
        }
    }

    private RawHttpConnection.Response inferChunked(String headers, byte[] chunks) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            String header =
                    "POST " + INFER + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" + headers + "\r\n";
            return connection.send(join(bytes(header), chunks)).receive();
        }
    }

    private RawHttpConnection.Response announce(String headers) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection
                    .send(bytes("POST " + INFER + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n"))
                    .receive();
        }
    }

    private static void assertError(RawHttpConnection.Response response, int status, String error) {
        assertThat(response.text()).startsWith("{\"error\":\"" + error);
        assertThat(response.status()).isEqualTo(status);
    }

    private static String jsonLength(String json) {
        return "Inference-Header-Content-Length: " + json.length() + "\r\n";
    }

    private static byte[] randomBytes(int size) {
        byte[] data = new byte[size];
        new Random(size).nextBytes(data);
        return data;
    }
}
