package dev.nereid.http.infer;

import static dev.nereid.http.RawHttpConnection.bytes;
import static dev.nereid.http.RawHttpConnection.join;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.FakeSharedMemory;
import dev.nereid.testkit.ReceivedRequest;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Requests with tensors in shared memory. */
class SharedTensorsIT {
    private static final String IN_REGION =
            "\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_offset\":%d,\"shared_memory_byte_size\":%d}";

    private RunningFrontend frontend;

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
        frontend.server.sharedMemory().register("r", "/r", 0, 64);
    }

    @AfterEach
    void stop() {
        frontend.close(); // a response may be sent before its request has ended
        assertThat(frontend.server.sharedMemory().leases()).isZero();
    }

    @Test
    void readsAnInputWithoutACopy() throws IOException {
        region().asSlice(8, 3).copyFrom(MemorySegment.ofArray(new byte[] {7, 8, 9}));

        RawHttpConnection.Response response = infer("", "{\"inputs\":[" + input("INPUT0", 3, 8) + "]}");

        assertThat(response.text())
                .endsWith("[{\"name\":\"OUTPUT0\",\"datatype\":\"UINT8\",\"shape\":[3],\"data\":[7,8,9]}]}");
    }

    @Test
    void looksUpTheRegionOfAnOutputForEachRequest() throws IOException {
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[2],\"datatype\":\"UINT8\",\"parameters\":"
                + "{\"binary_data_size\":2}}],\"outputs\":[{\"name\":\"OUTPUT0\"," + String.format(IN_REGION, 4, 2)
                + "}]}";
        String headers = "Inference-Header-Content-Length: " + json.length() + "\r\n";
        assertThat(infer(headers, json + "ab").status()).isEqualTo(200);

        frontend.server.sharedMemory().unregister("r");
        RawHttpConnection.Response response = infer(headers, json + "cd");

        assertThat(response.status()).isEqualTo(404);
        assertThat(response.text()).contains("'r'");
        frontend.server.sharedMemory().register("r", "/r", 0, 64);
        assertThat(infer(headers, json + "ef").status()).isEqualTo(200);
    }

    @Test
    void mixesWaysOfSendingInputs() throws IOException {
        region().fill((byte) 5);
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1],\"datatype\":\"UINT8\",\"data\":[1]},"
                + input("INPUT1", 2, 0)
                + ",{\"name\":\"INPUT2\",\"shape\":[1],\"datatype\":\"UINT8\",\"parameters\":{\"binary_data_size\":1}}]}";

        RawHttpConnection.Response response =
                infer("Inference-Header-Content-Length: " + json.length() + "\r\n", json + "\u0009");

        assertThat(response.text()).contains("\"data\":[1]", "\"data\":[5,5]", "\"data\":[9]");
    }

    @Test
    void writesOnlyNameTypeAndShapeOfAnOutputInSharedMemory() throws IOException {
        frontend.server.add(FakeModel.identity("id", DataType.UINT8, 0, -1).responding(SharedTensorsIT::putIntoTarget));

        RawHttpConnection.Response response = post(
                "/v2/models/id/infer",
                "",
                "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[2],\"datatype\":\"UINT8\",\"data\":[3,4]}],"
                        + "\"outputs\":[{\"name\":\"OUTPUT0\"," + String.format(IN_REGION, 16, 4) + "}],"
                        + "\"parameters\":{\"binary_data_output\":true}}");

        assertThat(response.text())
                .isEqualTo("{\"model_name\":\"id\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"OUTPUT0\","
                        + "\"datatype\":\"UINT8\",\"shape\":[2]}]}");
        assertThat(region().asSlice(16, 3).toArray(ValueLayout.JAVA_BYTE)).containsExactly(3, 4, 0);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "other | 0 | 3 | 404 | Unable to find shared memory region: 'other'",
                "r | 65 | 3 | 400 | Invalid offset for shared memory region: 'r'",
                "r | 62 | 3 | 400 | Invalid offset + byte size for shared memory region: 'r'",
                "r | 18446744073709551615 | 3 | 400 | Invalid offset for shared memory region: 'r'",
                "r | 1 | 18446744073709551615 | 400 | Invalid offset + byte size for shared memory region: 'r'",
            })
    void refusesUnregisteredPlaces(String region, String offset, String size, int status, String error)
            throws IOException {
        String place = "\"parameters\":{\"shared_memory_region\":\"" + region + "\",\"shared_memory_offset\":" + offset
                + ",\"shared_memory_byte_size\":" + size + "}";

        for (String body : new String[] {
            "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[3],\"datatype\":\"UINT8\"," + place + "}]}",
            "{\"inputs\":[" + input("INPUT0", 3, 0) + "],\"outputs\":[{\"name\":\"OUTPUT0\"," + place + "}]}"
        }) {
            RawHttpConnection.Response response = infer("", body);

            assertThat(response.text()).isEqualTo("{\"error\":\"" + error + "\"}");
            assertThat(response.status()).isEqualTo(status);
            assertThat(response.header("content-type")).isEqualTo("application/json");
        }
    }

    @Test
    void releasesRegionsWhenTheRequestFails() throws IOException {
        assertThat(infer("", "{\"inputs\":[" + input("INPUT0", 3, 0) + "],\"outputs\":1}")
                        .status())
                .isEqualTo(500);
        assertThat(infer("", "{\"inputs\":[" + input("INPUT0", 3, 0) + "," + input("INPUT0", 3, 0) + "]}")
                        .status())
                .isEqualTo(400);
    }

    /** Returns the completions in which a model responds on the event loop. */
    static Stream<Arguments> completions() {
        Map<String, Consumer<ReceivedRequest>> completions = Map.of(
                "response", ReceivedRequest::respondWithInputs,
                "failure", received -> received.fail(ErrorCode.UNAVAILABLE, "no"),
                "refusal", received -> received.refuse(ErrorCode.UNAVAILABLE, "no"),
                "end", ReceivedRequest::end,
                "failed response",
                        received -> {
                            received.respondWithError(ErrorCode.UNAVAILABLE, "no");
                            received.end();
                        },
                "two responses",
                        received -> {
                            received.respond(List.of(), Map.of(), false);
                            received.respondWithInputs();
                        });
        return completions.entrySet().stream()
                .flatMap(completion -> Stream.of(0, 1 << 20)
                        .map(inline -> Arguments.of(Named.of(completion.getKey(), completion.getValue()), inline)));
    }

    @ParameterizedTest
    @MethodSource("completions")
    void regionsAreReleasedBeforeTheClientHasItsResponse(Consumer<ReceivedRequest> completion, int maxInlineBytes)
            throws IOException {
        frontend.close();
        frontend = new RunningFrontend(RunningFrontend.options(http -> http.maxInlineBytes = maxInlineBytes));
        FakeSharedMemory shared = frontend.server.sharedMemory();
        shared.register("r", "/r", 0, 64);
        frontend.server.add(FakeModel.identity("id", DataType.UINT8, 0, -1).responding(completion));

        try (RawHttpConnection connection = frontend.connect()) {
            connection
                    .post("/v2/models/id/infer", "", bytes("{\"inputs\":[" + input("INPUT0", 3, 0) + "]}"))
                    .receive();
            shared.note("response");
        }

        assertThat(shared.events()).startsWith("leased r", "released r").containsSubsequence("released r", "response");
    }

    private static void putIntoTarget(ReceivedRequest received) {
        var input = received.input(0, "OUTPUT0");
        MemorySegment target =
                received.request().outputs().getFirst().target().orElseThrow().memory();
        target.asSlice(0, input.tensor().byteSize()).copyFrom(input.tensor().data());
        received.respondWithInputs();
    }

    private MemorySegment region() {
        return frontend.server.sharedMemory().memory("r");
    }

    private RawHttpConnection.Response infer(String headers, String body) throws IOException {
        return post("/v2/models/plain/infer", headers, body);
    }

    private RawHttpConnection.Response post(String path, String headers, String body) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.post(path, headers, join(bytes(body))).receive();
        }
    }

    private static String input(String name, int size, int offset) {
        return "{\"name\":\"" + name + "\",\"shape\":[" + size + "],\"datatype\":\"UINT8\","
                + String.format(IN_REGION, offset, size) + "}";
    }
}
