package dev.nereid.http.json;

import static dev.nereid.http.RawHttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.ReceivedRequest;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The limit on the heap memory of unsent long texts. */
@Timeout(60)
class JsonMemoryLimiterIT {
    private static final int MIB = 1 << 20;
    private static final long BOUND = 16 * MIB;
    private static final String LONG = "/v2/models/long/";
    private static final byte[] INFER =
            bytes("{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1],\"datatype\":\"UINT8\",\"data\":[1]}]}");
    private static final byte[] GENERATE = bytes("{\"INPUT0\":[1]}");

    private final JsonMemoryLimiter texts = new JsonMemoryLimiter(BOUND);
    private RunningFrontend frontend;
    private volatile int size;
    private volatile int count = 1;

    @BeforeEach
    void start() throws IOException {
        LeakCheckingMemory memory = new LeakCheckingMemory();
        frontend = new RunningFrontend(RunningFrontend.options(http -> http.maxInlineBytes = 0), memory, memory, texts);
        frontend.server.add(FakeModel.identity("long", DataType.UINT8, 0, -1).responding(this::execute));
        frontend.server.add(
                FakeModel.identity("stream", DataType.UINT8, 0, -1).decoupled().responding(this::execute));
    }

    @AfterEach
    void stop() throws IOException {
        frontend.close();
        assertThat(texts.reserved()).isZero();
    }

    @Test
    void refusesATextThatDoesNotFit() throws IOException {
        size = 20 * MIB;
        try (RawHttpConnection connection = frontend.connect()) {
            assertRefused(connection.post(LONG + "infer", "", INFER).receive());
            assertRefused(connection.post(LONG + "generate", "", GENERATE).receive());
            connection.post("/v2/models/stream/generate_stream", "", GENERATE);
            assertRefused(connection.receiveHeader());
        }
    }

    @Test
    void releasesMemoryWhenATextWasSent() throws IOException {
        size = 12 * MIB;
        try (RawHttpConnection connection = frontend.connect()) {
            for (int i = 0; i < 5; i++) {
                assertThat(connection.post(LONG + "infer", "", INFER).receive().body())
                        .hasSizeGreaterThan(size);
                assertThat(connection
                                .post(LONG + "generate", "", GENERATE)
                                .receive()
                                .body())
                        .hasSizeGreaterThan(size);
                connection.post(LONG + "generate_stream", "", GENERATE).receiveHeader();
                long received = 0;
                for (String chunk = connection.receiveChunk(); !chunk.isEmpty(); chunk = connection.receiveChunk()) {
                    received += chunk.length();
                }
                assertThat(received).isGreaterThan(size);
            }
        }
    }

    @Test
    void releasesMemoryWhenClientsLeave() throws IOException {
        size = 12 * MIB;
        for (String path : List.of("infer", "generate", "generate_stream")) {
            try (RawHttpConnection connection = slow(frontend)) {
                connection.post(LONG + path, "", path.equals("infer") ? INFER : GENERATE);
                connection.receiveHeader();
            }
            awaitFreeMemory();
        }
    }

    @Test
    void closesTheConnectionOfAClientThatReadsTooSlowlyAtTheLimit() throws IOException {
        size = 13 * MIB;
        try (RawHttpConnection slow = slow(frontend)) {
            slow.post(LONG + "infer", "", INFER).receiveHeader();

            awaitFreeMemory();

            assertThat(slow.readToTheEnd()).isLessThan(size);
        }
    }

    @Test
    void closesTheConnectionOfAClientThatDoesNotReadShortEvents() throws Exception {
        count = 200;
        size = 60_000;
        LeakCheckingMemory memory = new LeakCheckingMemory();
        JsonMemoryLimiter small = new JsonMemoryLimiter(MIB);
        CountDownLatch responded = new CountDownLatch(1);
        try (RunningFrontend other = new RunningFrontend(RunningFrontend.OPTIONS, memory, memory, small)) {
            other.server.add(FakeModel.identity("stream", DataType.UINT8, 0, -1)
                    .decoupled()
                    .responding(received -> {
                        execute(received);
                        responded.countDown();
                    }));
            try (RawHttpConnection slow = slow(other)) {
                slow.post("/v2/models/stream/generate_stream", "", GENERATE);
                assertThat(responded.await(20, TimeUnit.SECONDS)).isTrue();

                while (other.http.openConnections() > 0) { // bounded by the timeout of the test
                    Thread.onSpinWait();
                }
            }
        }
        assertThat(small.reserved()).isZero();
    }

    /** Sends requests until there is memory for a text of more than half of the limit. */
    private void awaitFreeMemory() throws IOException {
        int status = 503;
        while (status == 503) { // bounded by the timeout of the test
            try (RawHttpConnection other = frontend.connect()) {
                status = other.post(LONG + "infer", "", INFER).receive().status();
            }
        }
        assertThat(status).isEqualTo(200);
    }

    private static void assertRefused(RawHttpConnection.Response response) {
        assertThat(response.status()).isEqualTo(503);
        assertThat(response.header("retry-after")).isEqualTo("1");
    }

    /** Connects with a small receive buffer. */
    private static RawHttpConnection slow(RunningFrontend server) throws IOException {
        Socket socket = new Socket();
        socket.setReceiveBufferSize(4096);
        socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), server.http.port()));
        return new RawHttpConnection(socket);
    }

    private void execute(ReceivedRequest received) {
        Map<String, ParameterValue> parameters = Map.of("text", new ParameterValue.Text("x".repeat(size)));
        for (int i = 1; i <= count; i++) {
            received.respond(List.of(received.input(0, "OUTPUT0")), parameters, i == count);
        }
    }
}
