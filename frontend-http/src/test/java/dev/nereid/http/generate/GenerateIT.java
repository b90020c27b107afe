package dev.nereid.http.generate;

import static dev.nereid.http.RawHttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The {@code generate} extension over real sockets. */
@Timeout(60)
class GenerateIT {
    private static final String GENERATE = "/v2/models/later/generate";
    private static final String STREAM = "/v2/models/later/generate_stream";
    /** After so long, a connection takes nothing more without a client that reads. */
    private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(300);

    private static final String NOT_ONE = "{\"error\":\"generate expects model to produce exactly 1 response, use"
            + " generate stream for model that generates various number of responses\"}";

    private final BlockingQueue<ReceivedRequest> requests = new LinkedBlockingQueue<>();
    private RunningFrontend frontend;

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
        frontend.server.add(
                FakeModel.identity("later", DataType.INT32, 0, -1).decoupled().responding(requests::add));
        frontend.server.add(FakeModel.identity("ints", DataType.INT32, 0, -1));
        frontend.server.add(FakeModel.identity("texts", DataType.BYTES, 8, -1));
        frontend.server.add(FakeModel.identity("pairs", DataType.FP32, 8, -1, 2, -1));
        frontend.server.add(FakeModel.identity("rows", DataType.BYTES, 8, 2));
        frontend.server.add(FakeModel.identity("columns", DataType.BYTES, 8, 1));
        frontend.server.add(FakeModel.identity("cubes", DataType.FP32, 8, 2, 2));
        frontend.server.add(FakeModel.identity("fixed", DataType.INT8, 0, 2, 3));
        frontend.server.add(FakeModel.identity("bools", DataType.BOOL, 0, -1));
    }

    @AfterEach
    void stop() {
        frontend.close();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "ints | {\"INPUT0\":[1,2,3]} | [1,2,3]",
                "ints | {\"INPUT0\":[7]} | 7",
                "ints | {\"INPUT0\":7} | 7",
                "ints | {\"parameters\":{\"INPUT0\":[8,9]}} | [8,9]",
                "texts | {\"INPUT0\":\"a\\u00e4\"} | \"a\u00e4\"",
                "texts | {\"INPUT0\":[\"a\",\"b\"]} | [\"a\",\"b\"]",
                "pairs | {\"INPUT0\":[1,2,3,4]} | [1.0,2.0,3.0,4.0]",
                "fixed | {\"INPUT0\":[1,2,3,4,5,6]} | [[1,2,3],[4,5,6]]",
                "rows | {\"INPUT0\":[\"a\",\"\",\"c\",\"\u00e4\"]} | [[\"a\",\"\"],[\"c\",\"\u00e4\"]]",
                "rows | {\"INPUT0\":[\"a\",\"b\"]} | [\"a\",\"b\"]",
                "columns | {\"INPUT0\":[\"a\",\"b\",\"c\"]} | [[\"a\"],[\"b\"],[\"c\"]]",
                "columns | {\"INPUT0\":[\"a\"]} | \"a\"",
                "cubes | {\"INPUT0\":[1,2,3,4,5,6,7,8]} | [[[1.0,2.0],[3.0,4.0]],[[5.0,6.0],[7.0,8.0]]]",
                "cubes | {\"INPUT0\":[1,2,3,4]} | [1.0,2.0,3.0,4.0]",
                "bools | {\"INPUT0\":true} | true",
            })
    void respondsWithTheOutputsAsMembers(String model, String body, String output) throws IOException {
        RawHttpConnection.Response response = post("/v2/models/" + model + "/generate", body);

        assertThat(response.text())
                .isEqualTo("{\"OUTPUT0\":" + output + ",\"model_name\":\"" + model + "\",\"model_version\":\"1\"}");
        assertThat(response.status()).isEqualTo(200);
        assertThat(response.header("content-type")).isEqualTo("application/json");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "texts | [\"a\",\"b\",\"c\"] | 1,3",
                "texts | \"a\" | 1,1",
                "texts | [] | ",
                "pairs | [1,2,3,4,5,6] | 1,1,2,3",
                "fixed | [1,2,3,4,5,6] | 2,3",
                "ints | [] | ",
            })
    void derivesTheShape(String model, String data, String shape) throws IOException {
        post("/v2/models/" + model + "/generate", "{\"INPUT0\":" + data + "}");

        assertThat(frontend.server
                        .requests()
                        .getFirst()
                        .request()
                        .inputs()
                        .getFirst()
                        .dims())
                .isEqualTo(
                        shape == null
                                ? new long[0]
                                : List.of(shape.split(",")).stream()
                                        .mapToLong(Long::parseLong)
                                        .toArray());
    }

    @Test
    void readsOtherMembersAsParameters() throws IOException {
        post(
                "/v2/models/ints/generate",
                "{\"id\":\"g1\",\"INPUT0\":1,\"priority\":3,\"x\":1.5,\"parameters\":{\"sequence_id\":\"s\",\"on\":true}}");

        ReceivedRequest received = frontend.server.requests().getFirst();
        assertThat(received.request().id()).isEqualTo("g1");
        assertThat(received.request().parameters())
                .containsExactly(
                        Map.entry("id", new ParameterValue.Text("g1")),
                        Map.entry("priority", new ParameterValue.Int(3)),
                        Map.entry("x", new ParameterValue.Real(1.5)),
                        Map.entry("sequence_id", new ParameterValue.Text("s")),
                        Map.entry("on", new ParameterValue.Bool(true)));
        assertThat(received.request().options().priority()).isZero();
    }

    @Test
    void respondsWithIdAndParametersBesideTheOutputs() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(GENERATE, "", bytes("{\"id\":\"g\",\"INPUT0\":5}"));
            Map<String, ParameterValue> parameters = new LinkedHashMap<>();
            parameters.put("z", new ParameterValue.Bool(true));
            parameters.put("a", new ParameterValue.Text("t"));
            ReceivedRequest received = take();
            received.respond(List.of(received.input(0, "OUT")), parameters, true);

            assertThat(connection.receive().text())
                    .isEqualTo("{\"OUT\":5,\"a\":\"t\",\"id\":\"g\",\"model_name\":\"later\",\"model_version\":\"1\","
                            + "\"z\":true}");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "ints | hello | 500 | failed to parse the request JSON buffer: Invalid value. at 0",
                "ints | `` | 500 | failed to parse the request JSON buffer: The document is empty. at 0",
                "ints | [1] | 500 | attempt to get members for non-object",
                "ints | {\"id\":1} | 500 | Unable to parse 'id': attempt to access JSON non-string as string",
                "ints | {\"INPUT0\":\"a\"} | 500 |"
                        + " Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
                "texts | {\"INPUT0\":5} | 500 |"
                        + " Unable to parse JSON bytes array: attempt to access JSON non-string as string",
                "ints | {\"INPUT0\":1,\"sampling\":{\"temp\":1}} | 400 |"
                        + " parameter 'sampling' has invalid type. It should be either 'int', 'bool', or 'string'.",
                "ints | {\"INPUT0\":1,\"parameters\":3} | 500 |"
                        + " Expected JSON object for keyword: 'parameters': attempt to access JSON non-object as object;"
                        + " parameters: expected an object, got 3",
                "ints | {\"parameters\":[],\"INPUT0\":1} | 500 | Expected JSON object for keyword: 'parameters'",
                "ints | {\"INPUT0\":1,\"parameters\":{\"nested\":{\"twice\":1}}} | 400 | Converting keyword: 'parameters':"
                        + " parameter 'nested' has invalid type. It should be either 'int', 'bool', or 'string'.",
                "ints | {\"parameters\":{\"INPUT0\":\"a\"}} | 500 | Converting keyword: 'parameters':"
                        + " Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
                "fixed | {\"parameters\":{\"INPUT0\":[1,2,3,4]}} | 400 | Converting keyword: 'parameters':"
                        + " The schema can not convert input 'INPUT0' to tensor with proper shape",
                "ints | {\"INPUT0\":1,\"parameters\":{\"parameters\":{}}} | 400 | Converting keyword: 'parameters':"
                        + " parameter 'parameters' has invalid type.",
                "fixed | {\"INPUT0\":[1,2,3,4]} | 400 |"
                        + " The schema can not convert input 'INPUT0' to tensor with proper shape",
                "fixed | {\"INPUT0\":[1,2,3,4,5,6,7,8,9,10,11,12]} | 400 |"
                        + " The schema can not convert input 'INPUT0' to tensor with proper shape",
                "nope | {\"INPUT0\":1} | 404 | Request for unknown model: 'nope' is not found",
                "ints/versions/9 | {\"INPUT0\":1} | 404 | Request for unknown model: 'ints' version 9 is not found",
            })
    void reportsErrorsOfEitherEndpoint(String model, String body, int status, String error) throws IOException {
        for (String form : List.of("/generate", "/generate_stream")) {
            RawHttpConnection.Response response = post("/v2/models/" + model + form, body);

            assertThat(response.text()).startsWith("{\"error\":\"" + error);
            assertThat(response.status()).isEqualTo(status);
            assertThat(response.header("content-type")).isEqualTo("application/json");
        }
        assertThat(frontend.server.requests()).isEmpty();
    }

    @Test
    void refusesModelsWithAnInputOfTheNameOfTheKeyword() throws IOException {
        FakeModel ints = FakeModel.identity("odd", DataType.INT32, 0, -1);
        frontend.server.add(ints.withInput("parameters"));

        RawHttpConnection.Response response = post("/v2/models/odd/generate", "{}");

        assertThat(response.status()).isEqualTo(400);
        assertThat(response.text())
                .isEqualTo("{\"error\":\"Keyword 'parameters' for nested schema also given as input tensor name\"}");
    }

    @ParameterizedTest
    @ValueSource(strings = {"gzip", "deflate", "br"})
    void refusesCompressedBodies(String encoding) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response = connection
                    .post(GENERATE, "Content-Encoding: " + encoding + "\r\n", bytes("{}"))
                    .receive();

            assertThat(response.status()).isEqualTo(400);
            assertThat(response.text())
                    .isEqualTo("{\"error\":\"Unsupported content-encoding, only 'identity' is supported.\"}");
            assertThat(connection
                            .post(GENERATE, "Content-Encoding: identity\r\n", bytes("{}x"))
                            .receive()
                            .status())
                    .isEqualTo(500);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {GENERATE, STREAM})
    void refusesOtherMethods(String path) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response =
                    connection.request("GET", path).receive();

            assertThat(response.status()).isEqualTo(405);
            assertThat(response.header("content-type")).isEqualTo("application/json");
        }
    }

    @Test
    void respondsWhenTheModelEndsAfterItsOnlyResponse() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(GENERATE, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();
            received.respond(List.of(received.input(0, "OUT")), Map.of(), false);
            received.end();

            assertThat(connection.receive().text()).startsWith("{\"OUT\":5,");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 2, 3})
    void reportsThatOneResponseWasExpected(int responses) throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(GENERATE, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();
            for (int i = 0; i < responses; i++) {
                received.respond(List.of(received.input(0, "OUT")), Map.of(), i == 2);
            }
            received.end();

            RawHttpConnection.Response response = connection.receive();
            assertThat(response.status()).isEqualTo(200);
            assertThat(response.text()).isEqualTo(NOT_ONE);
        }
    }

    @Test
    void cancelsTheRequestAtTheSecondResponse() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(GENERATE, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();
            received.respond(List.of(received.input(0, "OUT")), Map.of(), false);
            received.respond(List.of(received.input(0, "OUT")), Map.of(), false);

            assertThat(connection.receive().text()).isEqualTo(NOT_ONE);
            assertThat(received.awaitCancel(Duration.ofSeconds(20))).isTrue();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void returnsTheErrorOfTheModel(int responses) throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(GENERATE, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();
            for (int i = 0; i < responses; i++) {
                received.respond(List.of(received.input(0, "OUT")), Map.of(), false);
            }
            received.fail(ErrorCode.UNAVAILABLE, "too busy");

            RawHttpConnection.Response response = connection.receive();
            assertThat(response.status()).isEqualTo(503);
            assertThat(response.text()).isEqualTo("{\"error\":\"too busy\"}");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void respondsWithTheOnlyFailedResponse(boolean ends) throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(GENERATE, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();
            received.respondWithError(ErrorCode.UNAVAILABLE, "not this one");
            if (ends) {
                received.end();
            } else {
                received.respond(List.of(received.input(0, "OUT")), Map.of(), true);
            }

            RawHttpConnection.Response response = connection.receive();
            assertThat(response.status()).isEqualTo(503);
            assertThat(response.header("content-type")).isEqualTo("application/json");
            assertThat(response.text()).isEqualTo(ends ? "{\"error\":\"not this one\"}" : NOT_ONE);
        }
    }

    @Test
    void reportsMoreThanOneResponseIfTheSecondFailed() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(GENERATE, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();
            received.respond(List.of(received.input(0, "OUT")), Map.of(), false);
            received.respondWithError(ErrorCode.UNAVAILABLE, "not this one");

            RawHttpConnection.Response response = connection.receive();
            assertThat(response.status()).isEqualTo(200);
            assertThat(response.text()).isEqualTo(NOT_ONE);
            assertThat(received.awaitCancel(Duration.ofSeconds(20))).isTrue();
        }
    }

    @Test
    void streamsAFailedResponseAndGoesOn() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(STREAM, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();
            received.respondWithError(ErrorCode.UNAVAILABLE, "not this one");
            received.respond(List.of(received.input(0, "OUT")), Map.of(), false);
            received.respondWithError(ErrorCode.INTERNAL, "nor this");
            received.end();

            RawHttpConnection.Response header = connection.receiveHeader();
            assertThat(header.status()).isEqualTo(503); // that of the first response
            assertThat(header.header("content-type")).isEqualTo("text/event-stream; charset=utf-8");
            assertThat(connection.receiveChunk()).isEqualTo("data: {\"error\":\"not this one\"}\n\n");
            assertThat(connection.receiveChunk()).startsWith("data: {\"OUT\":5,");
            assertThat(connection.receiveChunk()).isEqualTo("data: {\"error\":\"nor this\"}\n\n");
            assertThat(connection.receiveChunk()).isEmpty();
        }
    }

    @Test
    void streamsEachResponseWhenItComes() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(STREAM, "", bytes("{\"id\":\"r\",\"INPUT0\":5}"));
            ReceivedRequest received = take();

            received.respond(List.of(received.input(0, "OUT")), Map.of(), false);
            RawHttpConnection.Response header = connection.receiveHeader();
            assertThat(header.status()).isEqualTo(200);
            assertThat(header.header("content-type")).isEqualTo("text/event-stream; charset=utf-8");
            String event = "data: {\"OUT\":5,\"id\":\"r\",\"model_name\":\"later\",\"model_version\":\"1\"}\n\n";
            assertThat(connection.receiveChunk()).isEqualTo(event);

            received.respond(List.of(received.input(0, "OUT")), Map.of(), false);
            assertThat(connection.receiveChunk()).isEqualTo(event);

            received.end();
            assertThat(connection.receiveChunk()).isEmpty();

            connection.post("/v2/models/ints/generate_stream", "", bytes("{\"INPUT0\":6}"));
            assertThat(connection.receiveHeader().status()).isEqualTo(200);
            assertThat(connection.receiveChunk()).startsWith("data: {\"OUTPUT0\":6,");
            assertThat(connection.receiveChunk()).isEmpty();
        }
    }

    @Test
    void streamsNothingIfThereIsNoResponse() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(STREAM, "", bytes("{\"INPUT0\":5}"));
            take().end();

            RawHttpConnection.Response header = connection.receiveHeader();
            assertThat(header.status()).isEqualTo(200);
            assertThat(header.header("content-type")).isEqualTo("text/event-stream; charset=utf-8");
            assertThat(connection.receiveChunk()).isEmpty();
        }
    }

    @Test
    void streamsAnErrorWithItsStatusIfItIsTheFirstResponse() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(STREAM, "", bytes("{\"INPUT0\":5}"));
            take().fail(ErrorCode.UNAVAILABLE, "too \"busy\"");

            assertThat(connection.receiveHeader().status()).isEqualTo(503);
            assertThat(connection.receiveChunk()).isEqualTo("data: {\"error\":\"too \\\"busy\\\"\"}\n\n");
            assertThat(connection.receiveChunk()).isEmpty();
        }
    }

    @Test
    void streamsALaterErrorAsAnEvent() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(STREAM, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();
            received.respond(List.of(received.input(0, "OUT")), Map.of(), false);
            received.fail(ErrorCode.INTERNAL, "broken");

            assertThat(connection.receiveHeader().status()).isEqualTo(200);
            assertThat(connection.receiveChunk()).startsWith("data: {\"OUT\":5");
            assertThat(connection.receiveChunk()).isEqualTo("data: {\"error\":\"broken\"}\n\n");
            assertThat(connection.receiveChunk()).isEmpty();
        }
    }

    @Test
    void respondsToARefusedRequestWithoutAStream() throws IOException {
        frontend.server.add(FakeModel.identity("refusing", DataType.INT32, 0, -1)
                .responding(received -> received.refuse(ErrorCode.INVALID_ARGUMENT, "no")));

        RawHttpConnection.Response response = post("/v2/models/refusing/generate_stream", "{\"INPUT0\":5}");

        assertThat(response.status()).isEqualTo(400);
        assertThat(response.header("content-type")).isEqualTo("application/json");
        assertThat(response.text()).isEqualTo("{\"error\":\"no\"}");
    }

    /** A model that runs on the event loop fails before the submission returns. */
    @Test
    void streamsTheErrorOfARequestThatFailsAtOnce() throws IOException {
        frontend.server.add(FakeModel.identity("failing", DataType.INT32, 0, -1)
                .responding(received -> received.fail(ErrorCode.INTERNAL, "no")));

        try (RawHttpConnection connection = frontend.connect()) {
            connection.post("/v2/models/failing/generate_stream", "", bytes("{\"INPUT0\":5}"));

            RawHttpConnection.Response header = connection.receiveHeader();
            assertThat(header.status()).isEqualTo(500);
            assertThat(header.header("content-type")).isEqualTo("text/event-stream; charset=utf-8");
            assertThat(connection.receiveChunk()).isEqualTo("data: {\"error\":\"no\"}\n\n");
            assertThat(connection.receiveChunk()).isEmpty();
        }
    }

    /** Backends may send any shape, and strings that are more or fewer than it says. */
    @Test
    void respondsWithAFlatArrayWhereRowsHaveNothing() throws Exception {
        byte[] three = {1, 0, 0, 0, 'a', 0, 0, 0, 0, 1, 0, 0, 0, 'c'};
        Map<String, NamedTensor> outputs = Map.of(
                "[]", output(DataType.FP32, new byte[0], 1L << 40, 0),
                "[[1,2],[3,4]]", output(DataType.INT8, new byte[] {1, 2, 3, 4}, 2, 2),
                "[[[[1]]],[[[2]]]]", output(DataType.INT8, new byte[] {1, 2}, 2, 1, 1, 1),
                "[\"a\",\"\",\"c\"]", output(DataType.BYTES, three, 2, 2));
        for (Map.Entry<String, NamedTensor> output : outputs.entrySet()) {
            for (String path : List.of(GENERATE, STREAM)) {
                try (RawHttpConnection connection = frontend.connect()) {
                    connection.post(path, "", bytes("{\"INPUT0\":5}"));
                    take().respond(List.of(output.getValue()), Map.of(), true);

                    String text = path.equals(GENERATE)
                            ? connection.receive().text()
                            : connection.receiveHeader().text() + connection.receiveChunk();
                    assertThat(text).contains("\"OUT\":" + output.getKey() + ",\"model_name\"");
                }
            }
        }
    }

    private static NamedTensor output(DataType type, byte[] data, long... dims) {
        return new NamedTensor("OUT", Tensor.of(type, Shape.of(dims), MemorySegment.ofArray(data), MemoryPlace.HOST));
    }

    @ParameterizedTest
    @ValueSource(strings = {GENERATE, STREAM})
    void cancelsTheRequestOfADisconnectedClient(String path) throws Exception {
        RawHttpConnection connection = frontend.connect();
        connection.post(path, "", bytes("{\"INPUT0\":5}"));
        ReceivedRequest received = take();
        received.respond(List.of(received.input(0, "OUT")), Map.of(), false);

        connection.close();

        assertThat(received.awaitCancel(Duration.ofSeconds(20))).isTrue();
    }

    /** The client does not read, and the model does not stop. */
    @Test
    void closesTheConnectionOfAClientThatDoesNotRead() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(STREAM, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();
            MemorySegment data = MemorySegment.ofArray(new byte[1 << 20]);
            NamedTensor output =
                    new NamedTensor("OUT", Tensor.of(DataType.INT8, Shape.of(data.byteSize()), data, MemoryPlace.HOST));

            for (int i = 0; i < 500; i++) {
                received.respond(List.of(output), Map.of(), false);
            }

            assertThat(received.awaitCancel(Duration.ofSeconds(20))).isTrue();
            assertThat(connection.readToTheEnd()).isLessThan(32L << 20);
        }
    }

    /** The client does not read, and the model pauses. */
    @Test
    void pausesAModelUntilItsClientReads() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(STREAM, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();
            Semaphore open = new Semaphore(0);
            long sent = sendWhileOpen(received);
            received.flow().whenOpen(open::release);
            assertThat(received.flow().isOpen()).isFalse();
            assertThat(open.availablePermits()).isZero();

            assertThat(connection.receiveHeader().status()).isEqualTo(200);
            for (long i = 0; i < sent; i++) {
                assertThat(connection.receiveChunk()).contains("\"OUT\"");
            }

            assertThat(open.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
            assertThat(received.flow().isOpen()).isTrue();
            received.end();
            assertThat(connection.receiveChunk()).isEmpty();
        }
    }

    @Test
    void resumesAModelWhoseClientIsGone() throws Exception {
        RawHttpConnection connection = frontend.connect();
        connection.post(STREAM, "", bytes("{\"INPUT0\":5}"));
        ReceivedRequest received = take();
        sendWhileOpen(received);
        Semaphore open = new Semaphore(0);
        received.flow().whenOpen(open::release);

        connection.close();

        assertThat(open.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
        assertThat(received.flow().isOpen()).isTrue();
        assertThat(received.awaitCancel(Duration.ofSeconds(20))).isTrue();
        received.flow().whenOpen(open::release);
        assertThat(open.availablePermits()).isOne();
    }

    @Test
    void resumesAModelThatWentOnUntilItsConnectionIsClosed() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(STREAM, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();
            sendWhileOpen(received);
            Semaphore open = new Semaphore(0);
            received.flow().whenOpen(open::release);

            while (!received.flow().isOpen()) {
                received.respond(List.of(numbers()), Map.of(), false);
            }

            assertThat(open.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
            assertThat(received.awaitCancel(Duration.ofSeconds(20))).isTrue();
        }
    }

    @Test
    void neverPausesAModelForOneResponse() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(GENERATE, "", bytes("{\"INPUT0\":5}"));
            ReceivedRequest received = take();

            assertThat(received.flow()).isSameAs(ResponseFlow.OPEN);
            received.end();
            assertThat(connection.receive().status()).isEqualTo(200);
        }
    }

    /** Sends responses until the client is slow. Its connection takes some of them without reading. */
    private static long sendWhileOpen(ReceivedRequest received) {
        long sent = 0;
        long quietSince = System.nanoTime();
        while (System.nanoTime() - quietSince < QUIET_NANOS) {
            if (received.flow().isOpen()) {
                received.respond(List.of(numbers()), Map.of(), false);
                sent++;
                quietSince = System.nanoTime();
            } else {
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
            }
        }
        return sent;
    }

    private static NamedTensor numbers() {
        MemorySegment data = MemorySegment.ofArray(new byte[4 << 10]);
        return new NamedTensor("OUT", Tensor.of(DataType.INT8, Shape.of(data.byteSize()), data, MemoryPlace.HOST));
    }

    private ReceivedRequest take() throws InterruptedException {
        ReceivedRequest received = requests.poll(20, TimeUnit.SECONDS);
        assertThat(received).isNotNull();
        return received;
    }

    private RawHttpConnection.Response post(String path, String body) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.post(path, "", bytes(body)).receive();
        }
    }
}
