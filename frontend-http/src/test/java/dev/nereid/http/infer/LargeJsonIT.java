package dev.nereid.http.infer;

import static dev.nereid.http.RawHttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.HttpOptions;
import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.ReceivedRequest;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.AbstractMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests JSON texts too long for an event loop. The event loop serves other requests while workers read or write them.
 */
@Timeout(60)
@Tag("slow")
class LargeJsonIT {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final int INLINE = 64 << 10;
    private static final int COUNT = 300_000;
    /** Responds on an event loop. */
    private static final String ECHO = "/v2/models/echo/infer";

    private static final String ON_WORKER = "/v2/models/elsewhere/infer";
    private static final String HELD = "/v2/models/held/infer";
    private static final String OTHER = "/v2/models/plain/infer";

    private final ExecutorService instance = Executors.newSingleThreadExecutor();
    private final Gate gate = new Gate();
    /** Blocks the reader of a tensor of this size. */
    private volatile long heldSize = -1;

    /** Fails the reader of a tensor of this size, as deeply nested text may. */
    private volatile long brokenSize = -1;

    private RunningFrontend frontend;
    private ObservedMemory memory;

    @BeforeEach
    void start() throws IOException {
        LeakCheckingMemory checked = new LeakCheckingMemory();
        memory = new ObservedMemory(checked, size -> {
            if (size == heldSize) {
                gate.pass();
            }
            if (size == brokenSize) {
                throw new StackOverflowError();
            }
        });
        frontend = new RunningFrontend(options(INLINE), checked, memory);
        FakeModel echo = FakeModel.identity("echo", DataType.FP32, 0, -1);
        frontend.server.add(echo);
        frontend.server.add(
                FakeModel.identity("elsewhere", DataType.FP32, 0, -1).on(instance));
        frontend.server.add(FakeModel.identity("held", DataType.FP32, 0, -1).responding(this::hold));
        frontend.server.add(
                FakeModel.identity("strings", DataType.BYTES, 0, -1).responding(LargeJsonIT::respondTruncated));
        frontend.server.add(FakeModel.identity("broken", DataType.FP32, 0, -1).responding(LargeJsonIT::respondBroken));
    }

    @AfterEach
    void stop() throws InterruptedException {
        gate.open();
        assertThat(memory.awaitAllReturned(TIMEOUT)).isTrue();
        frontend.close();
        instance.shutdown();
    }

    @Test
    void servesOthersWhileALargeResponseIsWritten() throws Exception {
        try (RawHttpConnection first = frontend.connect();
                RawHttpConnection second = frontend.connect()) {
            first.post(HELD, "", floats(COUNT));
            gate.awaitArrival();

            assertThat(second.post(OTHER, "", small(2)).receive().text()).contains("\"data\":[2]");

            gate.open();
            assertThat(first.receive().text()).contains(data(COUNT));
        }
    }

    private static HttpOptions options(long maxInlineBytes) {
        return RunningFrontend.options(http -> {
            http.maxJsonBytes = 8 << 20;
            http.maxInlineBytes = maxInlineBytes;
        });
    }

    @Test
    void writesTheSameTextOnLoopAndWorker() throws Exception {
        try (RunningFrontend inline = new RunningFrontend(options(1 << 30));
                RawHttpConnection here = frontend.connect();
                RawHttpConnection there = inline.connect()) {
            inline.server.add(FakeModel.identity("echo", DataType.FP32, 0, -1));

            RawHttpConnection.Response pieces =
                    here.post(ECHO, "", floats(COUNT)).receive();
            RawHttpConnection.Response whole =
                    there.post(ECHO, "", floats(COUNT)).receive();

            assertThat(pieces.status()).isEqualTo(200);
            assertThat(pieces.body()).isEqualTo(whole.body());
            assertThat(pieces.headers()).isEqualTo(whole.headers());
        }
    }

    @Test
    void keepsTheOrderOfPipelinedRequests() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(HELD, "", floats(COUNT));
            connection.post(OTHER, "", small(3));
            connection.post(ON_WORKER, "", floats(COUNT / 2));
            connection.post(OTHER, "", small(4));
            gate.awaitArrival();
            gate.open();

            assertThat(connection.receive().text()).contains(data(COUNT));
            assertThat(connection.receive().text()).contains("\"data\":[3]");
            assertThat(connection.receive().text()).contains(data(COUNT / 2));
            assertThat(connection.receive().text()).contains("\"data\":[4]");
        }
    }

    @Test
    void sendsBytesBehindALongText() throws Exception {
        byte[] body = bytes("{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[" + COUNT
                + "],\"datatype\":\"FP32\"," + data(COUNT) + "},{\"name\":\"INPUT1\",\"shape\":[2],"
                + "\"datatype\":\"UINT8\",\"data\":[65,66]}],\"outputs\":[{\"name\":\"OUTPUT0\"},"
                + "{\"name\":\"OUTPUT1\",\"parameters\":{\"binary_data\":true}}]}");
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response =
                    connection.post(ECHO, "", body).receive();

            int length = Integer.parseInt(response.header("inference-header-content-length"));
            assertThat(response.text().substring(length)).isEqualTo("AB");
            assertThat(response.text().substring(0, length))
                    .contains(data(COUNT))
                    .endsWith("}");
        }
    }

    @Test
    void compressesALongText() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response = connection
                    .post(ECHO, "Accept-Encoding: gzip\r\n", floats(COUNT))
                    .receive();

            assertThat(response.header("content-encoding")).isEqualTo("gzip");
            try (GZIPInputStream plain = new GZIPInputStream(new ByteArrayInputStream(response.body()))) {
                assertThat(new String(plain.readAllBytes(), StandardCharsets.UTF_8))
                        .contains(data(COUNT));
            }
        }
    }

    @Test
    void returnsAnErrorForALargeResponseThatCannotBeWritten() throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response =
                    connection.post("/v2/models/strings/infer", "", small(1)).receive();

            assertThat(response.status()).isEqualTo(500);
            assertThat(response.text()).contains("output 'OUTPUT0': the string at byte 0 is truncated");
            assertThat(connection.post(OTHER, "", small(5)).receive().text()).contains("\"data\":[5]");
        }
    }

    @Test
    void releasesTheMemoryOfAClientThatDisconnectsWhileItsTextIsWritten() throws Exception {
        RawHttpConnection connection = frontend.connect();
        connection.post(HELD, "", floats(COUNT));
        gate.awaitArrival();

        connection.close();
        gate.open();

        assertThat(memory.awaitAllReturned(TIMEOUT)).isTrue();
    }

    @Test
    void servesOthersWhileALargeRequestIsRead() throws Exception {
        heldSize = (long) COUNT * Float.BYTES;
        try (RawHttpConnection first = frontend.connect();
                RawHttpConnection second = frontend.connect()) {
            first.post(ECHO, "", floats(COUNT));
            gate.awaitArrival();

            assertThat(second.post(OTHER, "", small(6)).receive().text()).contains("\"data\":[6]");

            gate.open();
            assertThat(first.receive().text()).contains(data(COUNT));
        }
    }

    @Test
    void releasesTheMemoryOfAClientThatDisconnectsWhileItsTextIsRead() throws Exception {
        heldSize = (long) COUNT * Float.BYTES;
        try (RawHttpConnection watcher = frontend.connect()) {
            RawHttpConnection connection = frontend.connect();
            connection.post(ECHO, "", floats(COUNT));
            gate.awaitArrival();

            connection.close();
            watcher.request("GET", "/v2/health/live").receive();
            gate.open();
        }

        assertThat(memory.awaitAllReturned(TIMEOUT)).isTrue();
    }

    @Test
    void reportsAnErrorInALargeRequest() throws Exception {
        byte[] body = floats(COUNT);
        body[body.length - 5] = 'x';
        try (RawHttpConnection connection = frontend.connect()) {
            assertThat(connection.post(ECHO, "", body).receive().status()).isEqualTo(500);
            assertThat(connection.post(OTHER, "", small(7)).receive().text()).contains("\"data\":[7]");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {2, COUNT})
    void respondsAfterAnErrorOfTheReader(int count) throws Exception {
        brokenSize = (long) count * Float.BYTES;
        try (RawHttpConnection connection = frontend.connect()) {
            assertInternal(connection.post(ECHO, "", floats(count)).receive());
            assertInternal(connection
                    .post("/v2/models/echo/generate", "", generated(count))
                    .receive());
            assertThat(connection.post(OTHER, "", small(7)).receive().text()).contains("\"data\":[7]");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {2, COUNT})
    void respondsAfterAnErrorOfTheWriter(int count) throws Exception {
        try (RawHttpConnection connection = frontend.connect()) {
            assertInternal(connection
                    .post("/v2/models/broken/infer", "", floats(count))
                    .receive());
            assertInternal(connection
                    .post("/v2/models/broken/generate", "", generated(count))
                    .receive());
            connection.post("/v2/models/broken/generate_stream", "", generated(count));
            assertThat(connection.receiveHeader().status()).isEqualTo(500);
            assertThat(connection.receiveChunk()).isEqualTo("data: {\"error\":\"internal error\"}\n\n");
        }
    }

    @Test
    void respondsAfterAnErrorOfTheFirstBytes() throws Exception {
        byte[] body = new byte[1000];
        brokenSize = body.length;
        try (RawHttpConnection connection = frontend.connect()) {
            assertInternal(connection
                    .post(OTHER, "Inference-Header-Content-Length: 0\r\n", body)
                    .receive());
            assertThat(connection.post(OTHER, "", small(7)).receive().text()).contains("\"data\":[7]");
        }
    }

    private static void assertInternal(RawHttpConnection.Response response) {
        assertThat(response.status()).isEqualTo(500);
        assertThat(response.text()).isEqualTo("{\"error\":\"internal error\"}");
    }

    @Test
    void servesOthersWhileALargeTextIsGenerated() throws Exception {
        try (RawHttpConnection first = frontend.connect();
                RawHttpConnection second = frontend.connect()) {
            first.post("/v2/models/held/generate", "", generated(COUNT));
            gate.awaitArrival();

            assertThat(second.post(OTHER, "", small(8)).receive().text()).contains("\"data\":[8]");

            gate.open();
            RawHttpConnection.Response response = first.receive();
            assertThat(response.text()).contains(numbers(COUNT)).endsWith("}");
            assertThat(response.header("content-type")).isEqualTo("application/json");
        }
    }

    @Test
    void generatesTheSameTextOnLoopAndWorker() throws Exception {
        try (RunningFrontend inline = new RunningFrontend(options(1 << 30));
                RawHttpConnection here = frontend.connect();
                RawHttpConnection there = inline.connect()) {
            inline.server.add(FakeModel.identity("echo", DataType.FP32, 0, -1));

            byte[] pieces = here.post("/v2/models/echo/generate", "", generated(COUNT))
                    .receive()
                    .body();

            assertThat(pieces)
                    .isEqualTo(there.post("/v2/models/echo/generate", "", generated(COUNT))
                            .receive()
                            .body());
        }
    }

    @Test
    void streamsLongAndShortEventsInOrder() throws Exception {
        BlockingQueue<ReceivedRequest> calls = new LinkedBlockingQueue<>();
        frontend.server.add(
                FakeModel.identity("stream", DataType.FP32, 0, -1).decoupled().responding(calls::add));
        try (RawHttpConnection connection = frontend.connect();
                RawHttpConnection other = frontend.connect()) {
            connection.post("/v2/models/stream/generate_stream", "", generated(COUNT));
            ReceivedRequest received = calls.poll(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
            received.respond(List.of(received.input(0, "LONG")), new BlockedParameters(gate), false);
            received.respond(List.of(), Map.of("n", new ParameterValue.Int(1)), false);
            received.respond(List.of(received.input(0, "LONG")), Map.of("n", new ParameterValue.Int(2)), false);
            received.end();
            gate.awaitArrival();
            assertThat(other.post(OTHER, "", small(9)).receive().text()).contains("\"data\":[9]");
            gate.open();

            connection.receiveHeader();
            StringBuilder text = new StringBuilder();
            for (String chunk = connection.receiveChunk(); !chunk.isEmpty(); chunk = connection.receiveChunk()) {
                text.append(chunk);
            }
            String[] events = text.toString().split("\n\n", -1);
            assertThat(events).hasSize(4);
            assertThat(events[0])
                    .startsWith("data: {")
                    .contains("\"LONG\":" + numbers(COUNT))
                    .endsWith("}");
            assertThat(events[1]).contains("\"n\":1");
            assertThat(events[2]).contains("\"LONG\":" + numbers(COUNT), "\"n\":2");
            assertThat(events[3]).isEmpty();
        }
    }

    @Test
    void releasesTheMemoryOfAClientThatLeavesItsStream() throws Exception {
        RawHttpConnection connection = frontend.connect();
        connection.post("/v2/models/held/generate_stream", "", generated(COUNT));
        gate.awaitArrival();

        connection.close();
        gate.open();

        assertThat(memory.awaitAllReturned(TIMEOUT)).isTrue();
    }

    @Test
    void servesOthersWhileALargeGenerateRequestIsRead() throws Exception {
        heldSize = (long) COUNT * Float.BYTES;
        try (RawHttpConnection first = frontend.connect();
                RawHttpConnection second = frontend.connect()) {
            first.post("/v2/models/echo/generate", "", generated(COUNT));
            gate.awaitArrival();

            assertThat(second.post(OTHER, "", small(1)).receive().text()).contains("\"data\":[1]");

            gate.open();
            assertThat(first.receive().text()).contains(numbers(COUNT));
        }
    }

    private static byte[] generated(int count) {
        return bytes("{\"INPUT0\":" + numbers(count) + "}");
    }

    /** Sends a response whose writer blocks in the middle of the text. */
    private void hold(ReceivedRequest received) {
        received.respond(List.of(received.input(0, "OUTPUT0")), new BlockedParameters(gate), true);
    }

    private static void respondTruncated(ReceivedRequest received) {
        byte[] data = new byte[2 * INLINE];
        data[3] = 1;
        MemorySegment segment = MemorySegment.ofArray(data);
        Tensor tensor = Tensor.of(DataType.BYTES, Shape.of(1), segment);
        received.respond(List.of(new NamedTensor("OUTPUT0", tensor)), Map.of(), true);
    }

    /** Sends a response whose writer fails. */
    private static void respondBroken(ReceivedRequest received) {
        received.respond(List.of(received.input(0, "OUTPUT0")), new BrokenParameters(), true);
    }

    private static byte[] small(int value) {
        return bytes(
                "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1],\"datatype\":\"UINT8\",\"data\":[" + value + "]}]}");
    }

    private static byte[] floats(int count) {
        return bytes("{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[" + count + "],\"datatype\":\"FP32\"," + data(count)
                + "}]}");
    }

    private static String data(int count) {
        return "\"data\":" + numbers(count);
    }

    private static String numbers(int count) {
        return IntStream.range(0, count).mapToObj(i -> i % 1000 + ".5").collect(Collectors.joining(",", "[", "]"));
    }

    /** Blocks a thread until the test opens it. Safe for use by any thread. */
    private static final class Gate {
        private final CountDownLatch visited = new CountDownLatch(1);
        private final CountDownLatch opened = new CountDownLatch(1);

        void pass() {
            visited.countDown();
            try {
                assertThat(opened.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }

        void awaitArrival() throws InterruptedException {
            assertThat(visited.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
        }

        void open() {
            opened.countDown();
        }
    }

    /** Empty parameters whose reader blocks. */
    private static final class BlockedParameters extends AbstractMap<String, ParameterValue> {
        private final Gate gate;

        BlockedParameters(Gate gate) {
            this.gate = gate;
        }

        @Override
        public Set<Entry<String, ParameterValue>> entrySet() {
            gate.pass();
            return Set.of();
        }
    }

    /** Parameters whose reader fails. */
    private static final class BrokenParameters extends AbstractMap<String, ParameterValue> {
        @Override
        public Set<Entry<String, ParameterValue>> entrySet() {
            throw new NoClassDefFoundError("ParameterValue");
        }
    }
}
