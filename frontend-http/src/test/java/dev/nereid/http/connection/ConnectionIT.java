package dev.nereid.http.connection;

import static dev.nereid.http.RawHttpConnection.bytes;
import static dev.nereid.http.RawHttpConnection.join;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.RefusalCause;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.http.HttpOptions;
import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Limits on connections: number, memory, timeouts and drain. */
@Timeout(60)
@Tag("slow")
class ConnectionIT {
    private static final String PATH = "/v2/models/later/infer";
    private static final String LIVE = "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n";
    /** The header of a request whose body consists of chunks. */
    private static final byte[] ENDLESS =
            bytes("POST " + PATH + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");

    private static final byte[] CHUNKS = bytes(("3e8\r\n" + "x".repeat(1000) + "\r\n").repeat(20));
    /** More than the sockets of client and server hold. */
    private static final long MAX_BUFFERED = 48 << 20;

    private static final long QUIET_MILLIS = 1000;
    private static final Duration SHORT = Duration.ofMillis(300);

    private final BlockingQueue<ReceivedRequest> requests = new LinkedBlockingQueue<>();
    private RunningFrontend frontend;

    @AfterEach
    void stop() {
        frontend.close();
    }

    @Test
    void aHeaderThatTakesTooLongGetsAResponse() throws IOException {
        start(http -> http.headerTimeout = SHORT);
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("GET /v2 HTTP/1.1\r\nHos"));

            assertLate(connection, "the header arrives too slowly");
            assertCounted(RefusalCause.MALFORMED);
        }
    }

    @Test
    void aConnectionWithoutARequestIsClosedSilently() throws IOException {
        start(http -> http.headerTimeout = SHORT);
        try (RawHttpConnection connection = frontend.connect()) {
            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    @Test
    void aConnectionThatIsIdleIsClosedSilently() throws IOException {
        start(http -> http.idleTimeout = SHORT);
        try (RawHttpConnection connection = frontend.connect()) {
            assertThat(connection.send(bytes(LIVE)).receive().status()).isEqualTo(200);
            assertThat(connection.isClosedByServer()).isTrue();
        }
    }

    @Test
    void aBodyThatTakesTooLongGetsAResponseAndItsMemoryIsFreed() throws IOException {
        start(http -> {
            http.minBodyBytesPerSecond = 1024;
            http.bodyGrace = SHORT;
        });
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(
                    join(bytes("POST " + PATH + " HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n"), new byte[10]));

            assertLate(connection, "the body arrives too slowly");
        }
    }

    @Test
    void aLongExecutionIsNotIdle() throws Exception {
        start(http -> {
            http.headerTimeout = SHORT;
            http.minBodyBytesPerSecond = 1 << 20;
            http.bodyGrace = SHORT;
            http.idleTimeout = SHORT;
            http.tlsHandshakeTimeout = SHORT;
            http.responseStallTimeout = SHORT;
        });
        try (RawHttpConnection busy = frontend.connect()) {
            busy.send(infer());
            ReceivedRequest received = nextRequest();
            try (RawHttpConnection idle = frontend.connect()) {
                assertThat(idle.isClosedByServer()).isTrue();
            }

            received.respondWithInputs();

            assertThat(busy.receive().status()).isEqualTo(200);
        }
    }

    @Test
    void aConnectionWhoseClientReadsNothingIsAborted() throws Exception {
        start(http -> http.responseStallTimeout = SHORT);
        try (Socket socket = new Socket()) {
            socket.setReceiveBufferSize(4096);
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), frontend.http.port()));
            byte[] requests = bytes(LIVE.repeat(1000));
            CompletableFuture<Boolean> cut = CompletableFuture.supplyAsync(() -> {
                try {
                    while (true) {
                        socket.getOutputStream().write(requests);
                    }
                } catch (IOException e) {
                    return true;
                }
            });

            assertThat(cut.get(30, TimeUnit.SECONDS)).isTrue();
        }
    }

    @Test
    void pipelinedRequestsAreHandledOneAfterTheOther() throws Exception {
        start(_ -> {});
        try (RawHttpConnection connection = frontend.connect()) {
            byte[] many = join(Stream.generate(ConnectionIT::infer).limit(300).toArray(byte[][]::new));
            connection.send(many);
            for (int i = 0; i < 300; i++) {
                ReceivedRequest received = nextRequest();
                assertThat(requests).isEmpty();
                received.respondWithInputs();
            }
            for (int i = 0; i < 300; i++) {
                assertThat(connection.receive().status()).isEqualTo(200);
            }
            assertThat(connection.send(bytes(LIVE)).receive().status()).isEqualTo(200);
        }
    }

    @Test
    void theBodyOfAPipelinedRequestStaysInTheSocket() throws Exception {
        start(_ -> {});
        try (SocketChannel client = connect()) {
            client.write(ByteBuffer.wrap(join(infer(), infer(), ENDLESS, bytes("1\r\n \r\n".repeat(100)))));
            nextRequest().respondWithInputs();
            ReceivedRequest second = nextRequest();

            assertStopsReading(client);

            second.respondWithInputs();
        }
    }

    @Test
    void bytesBehindPipelinedRequestsStayInTheSocket() throws Exception {
        start(_ -> {});
        try (SocketChannel client = connect()) {
            client.write(ByteBuffer.wrap(join(infer(), bytes(LIVE))));
            ReceivedRequest first = nextRequest();
            client.write(ByteBuffer.wrap(ENDLESS));

            assertStopsReading(client);

            first.respondWithInputs();
        }
    }

    private SocketChannel connect() throws IOException {
        return SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), frontend.http.port()));
    }

    /** Sends until the server has not read for a while. */
    private static void assertStopsReading(SocketChannel client) throws IOException {
        try (Selector selector = Selector.open()) {
            client.configureBlocking(false);
            client.register(selector, SelectionKey.OP_WRITE);
            long sent = 0;
            while (selector.select(QUIET_MILLIS) > 0) {
                selector.selectedKeys().clear();
                sent += client.write(ByteBuffer.wrap(CHUNKS));
                assertThat(sent).isLessThan(MAX_BUFFERED);
            }
        }
    }

    @Test
    void anIdleConnectionIsEvictedForANewOne() throws Exception {
        start(http -> http.limiter = new ConnectionLimiter(2, 0));
        try (RawHttpConnection busy = frontend.connect();
                RawHttpConnection idle = frontend.connect()) {
            busy.send(infer());
            ReceivedRequest received = nextRequest();
            assertThat(idle.send(bytes(LIVE)).receive().status()).isEqualTo(200);

            try (RawHttpConnection late = frontend.connect()) {
                assertThat(late.send(bytes(LIVE)).receive().status()).isEqualTo(200);
                assertThat(idle.isClosedByServer()).isTrue();
                assertThat(frontend.http.openConnections()).isEqualTo(2);
            }
            received.respondWithInputs();
            assertThat(busy.receive().status()).isEqualTo(200);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anIdleConnectionOfAnyEventLoopIsEvicted(boolean isIdleFirst) throws Exception {
        start(http -> {
            http.limiter = new ConnectionLimiter(2, 0);
            http.eventLoops = 2;
        });
        try (RawHttpConnection first = frontend.connect();
                RawHttpConnection second = frontend.connect()) {
            RawHttpConnection idle = isIdleFirst ? first : second;
            RawHttpConnection busy = isIdleFirst ? second : first;
            busy.send(infer());
            ReceivedRequest received = nextRequest();
            assertThat(idle.send(bytes(LIVE)).receive().status()).isEqualTo(200);

            try (RawHttpConnection late = frontend.connect()) {
                assertThat(late.send(bytes(LIVE)).receive().status()).isEqualTo(200);
                assertThat(idle.isClosedByServer()).isTrue();
            }
            received.respondWithInputs();
            assertThat(busy.receive().status()).isEqualTo(200);
        }
    }

    @Test
    void aNewConnectionIsRefusedWhileAllOthersAreBusy() throws Exception {
        start(http -> http.limiter = new ConnectionLimiter(1, 0));
        try (RawHttpConnection busy = frontend.connect()) {
            busy.send(infer());
            ReceivedRequest received = nextRequest();
            try (RawHttpConnection refused = frontend.connect()) {
                assertThat(refused.isClosedByServer()).isTrue();
            }
            assertThat(frontend.http.refusedConnections()).isEqualTo(1);
            received.respondWithInputs();
            assertThat(busy.receive().status()).isEqualTo(200);
        }
    }

    @Test
    void connectionsOfOneAddressAreLimited() throws Exception {
        start(http -> http.limiter = new ConnectionLimiter(0, 1));
        try (RawHttpConnection first = frontend.connect()) {
            assertThat(first.send(bytes(LIVE)).receive().status()).isEqualTo(200);
            try (RawHttpConnection refused = frontend.connect()) {
                assertThat(refused.isClosedByServer()).isTrue();
            }
            assertThat(first.send(bytes(LIVE)).receive().status()).isEqualTo(200);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "Host: x\r\nHost: x",
                "Host: x\r\nhost: y",
                "Transfer-Encoding: gzip",
                "Transfer-Encoding: gzip, chunked",
                "Transfer-Encoding: chunked, gzip",
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                "Transfer-Encoding: identity",
                "Content-Length: 3\r\nTransfer-Encoding: chunked",
                "Content-Length: 3\r\nContent-Length: 4",
            })
    void anAmbiguousHeaderIsRefusedWithAResponse(String header) throws IOException {
        start(_ -> {});
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("POST " + PATH + " HTTP/1.1\r\n" + header + "\r\n\r\nabc"));

            assertRefused(connection);
            assertCounted(RefusalCause.MALFORMED);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "zz\\r\\n",
                "-1\\r\\n",
                "3;a\\nabc\\r\\n",
                "fffffffffffffffff\\r\\n",
                "3\\r\\nabcdef",
                "3\\r\\nabc\\r\\n0\\r\\nno colon\\r\\n\\r\\n",
            })
    void aMalformedChunkIsRefusedWithAResponse(String chunks) throws IOException {
        start(_ -> {});
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(bytes("POST " + PATH + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + chunks.replace("\\r", "\r").replace("\\n", "\n") + "x".repeat(100_000)));

            assertRefused(connection);
            assertCounted(RefusalCause.MALFORMED);
        }
    }

    @Test
    void aMalformedChunkIsRefusedAfterTheResponseToAnEarlierRequest() throws Exception {
        start(_ -> {});
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(join(
                    infer(),
                    bytes("POST " + PATH + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")));
            nextRequest().respondWithInputs();

            assertThat(connection.receive().status()).isEqualTo(200);
            assertRefused(connection);
        }
    }

    @Test
    void responsesAnnounceTheEndWhileThePortCloses() throws Exception {
        start(http -> http.drainWindow = Duration.ofSeconds(20));
        List<RawHttpConnection> connections = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            RawHttpConnection connection = frontend.connect();
            connections.add(connection);
            assertThat(connection.send(infer()).receiveAfter(this::respond).header("connection"))
                    .isEmpty();
        }
        RawHttpConnection busy = frontend.connect();
        busy.send(infer());
        ReceivedRequest received = nextRequest();
        CompletableFuture<Void> closed = CompletableFuture.runAsync(frontend.http::close);
        awaitDraining();

        for (RawHttpConnection connection : connections) {
            RawHttpConnection.Response response = connection.send(infer()).receiveAfter(this::respond);
            assertThat(response.status()).isEqualTo(200);
            assertThat(response.header("connection")).isEqualTo("close");
            assertThat(connection.isClosedByServer()).isTrue();
        }
        received.respondWithInputs();
        assertThat(busy.receive().header("connection")).isEqualTo("close");
        closed.get(15, TimeUnit.SECONDS); // sooner than the window ends, since no connection is left
    }

    @Test
    void aConnectionIsClosedAtTheEndOfABodyWhoseResponseWasSent() throws Exception {
        start(_ -> {});
        try (RawHttpConnection busy = frontend.connect()) {
            busy.send(
                    join(infer(), bytes("GET /v2/health/live HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234")));
            ReceivedRequest received = nextRequest();
            CompletableFuture<Void> closed = CompletableFuture.runAsync(frontend.http::close);
            awaitDrained();
            received.respondWithInputs();
            assertThat(busy.receive().status()).isEqualTo(200);
            assertThat(busy.receive().status()).isEqualTo(200);

            busy.send(bytes("56789"));

            assertThat(busy.isClosedByServer()).isTrue();
            closed.get(15, TimeUnit.SECONDS);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "POST /v2/models/nowhere/infer, 404",
        "POST /v2/models/nowhere/generate, 404",
        "POST /v2/models/nowhere/generate_stream, 404",
        "GET /v2/models/later/infer, 405",
        "POST /v2/nothing, 404",
        "GET /v2/health/live, 200",
    })
    void aResponseBeforeTheEndOfItsBodyAnnouncesTheEndWhileThePortCloses(String request, int status) throws Exception {
        start(http -> http.drainWindow = Duration.ofSeconds(20));
        try (RawHttpConnection early = frontend.connect();
                RawHttpConnection busy = frontend.connect()) {
            assertThat(early.send(bytes(LIVE)).receive().status()).isEqualTo(200);
            busy.send(infer());
            ReceivedRequest received = nextRequest();
            CompletableFuture<Void> closed = CompletableFuture.runAsync(frontend.http::close);
            awaitDraining();

            early.send(bytes(request + " HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234"));
            RawHttpConnection.Response response = early.receive();
            assertThat(response.status()).isEqualTo(status);
            assertThat(response.header("connection")).isEqualTo("close");
            early.send(join(bytes("56789"), infer())); // the client sends on before it has read the response

            assertThat(early.isClosedByServer()).isTrue();
            assertThat(requests).as("requests behind the announced end").isEmpty();
            received.respondWithInputs();
            assertThat(busy.receive().header("connection")).isEqualTo("close");
            closed.get(15, TimeUnit.SECONDS); // sooner than the window ends
        }
    }

    @Test
    void aLongBodyIsNotReadDuringTheDrain() throws Exception {
        start(_ -> {});
        try (RawHttpConnection busy = frontend.connect()) {
            busy.send(infer());
            ReceivedRequest received = nextRequest();
            CompletableFuture<Void> closed = CompletableFuture.runAsync(frontend.http::close);
            awaitDrained();
            try (RawHttpConnection late = frontend.connect()) {
                late.send(bytes("POST " + PATH + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"));
                assertThat(late.receive().status()).isEqualTo(503);
                byte[] piece = new byte[1 << 20];
                for (int i = 0; i < 17; i++) {
                    late.send(piece);
                }

                assertThat(late.isQuietFor(3000)).as("left open").isFalse();
            }
            received.respondWithInputs();
            assertThat(busy.receive().status()).isEqualTo(200);
            closed.get(15, TimeUnit.SECONDS);
        }
    }

    @Test
    void aRequestIsServedWhoseEventLoopHadNoConnectionWhenTheDrainBegan() throws Exception {
        start(http -> {
            http.drainWindow = Duration.ofSeconds(20);
            http.eventLoops = 2;
        });
        RawHttpConnection busy = frontend.connect();
        busy.send(infer());
        ReceivedRequest first = nextRequest();
        frontend.connect().close(); // for the other event loop
        RawHttpConnection idle = frontend.connect();
        while (frontend.http.openConnections() > 2) { // ends with the test at the latest
            assertThat(idle.send(bytes(LIVE)).receive().status()).isEqualTo(200);
        }
        CompletableFuture<Void> closed = CompletableFuture.runAsync(frontend.http::close);
        awaitAnnouncement(idle);
        try (RawHttpConnection other = frontend.connect()) {
            other.send(infer());
            ReceivedRequest second = nextRequest();
            try (busy) {
                first.respondWithInputs();
                assertThat(busy.receive().status()).isEqualTo(200);
            }

            assertThat(other.isQuietFor(3000)).isTrue();

            second.respondWithInputs();
            assertThat(other.receive().status()).isEqualTo(200);
        }
        closed.get(15, TimeUnit.SECONDS);
    }

    /** Sends requests until a response announces the end of the connection. */
    private static void awaitAnnouncement(RawHttpConnection connection) throws IOException {
        String announced = "";
        while (announced.isEmpty()) {
            announced = connection.send(bytes(LIVE)).receive().header("connection");
        }
        assertThat(connection.isClosedByServer()).isTrue();
        connection.close();
    }

    private void awaitDrained() throws IOException {
        for (int i = 0; i < 10_000; i++) {
            try (RawHttpConnection probe = frontend.connect()) {
                if (probe.send(bytes(LIVE)).receive().status() == 503) {
                    return;
                }
            }
        }
        throw new AssertionError("new connections are served");
    }

    private void respond() {
        try {
            nextRequest().respondWithInputs();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void awaitDraining() throws IOException {
        for (int i = 0; i < 10_000; i++) {
            try (RawHttpConnection probe = frontend.connect()) {
                if (probe.send(bytes(LIVE)).receive().header("connection").equals("close")) {
                    return;
                }
            }
        }
        throw new AssertionError("no response announces the end");
    }

    private static void assertRefused(RawHttpConnection connection) throws IOException {
        RawHttpConnection.Response response = connection.receive();
        assertThat(response.status()).isEqualTo(400);
        assertThat(response.header("connection")).isEqualTo("close");
        assertThat(response.text()).startsWith("{\"error\":\"this is no request of HTTP/1.1: ");
        assertThat(connection.isClosedByServer()).isTrue();
    }

    private void assertCounted(RefusalCause cause) {
        assertThat(frontend.server.refusals().refused(RequestProtocol.HTTP, cause))
                .isEqualTo(1);
    }

    private static void assertLate(RawHttpConnection connection, String error) throws IOException {
        RawHttpConnection.Response response = connection.receive();
        assertThat(response.status()).isEqualTo(408);
        assertThat(response.header("connection")).isEqualTo("close");
        assertThat(response.text()).isEqualTo("{\"error\":\"" + error + "\"}");
        assertThat(connection.isClosedByServer()).isTrue();
    }

    private static byte[] infer() {
        byte[] body = bytes("{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[2],\"datatype\":\"UINT8\",\"data\":[1,2]}]}");
        return join(
                bytes("POST " + PATH + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length + "\r\n\r\n"), body);
    }

    private ReceivedRequest nextRequest() throws InterruptedException {
        ReceivedRequest received = requests.poll(20, TimeUnit.SECONDS);
        assertThat(received).isNotNull();
        return received;
    }

    /** Starts a front end with patience, but for what changes. */
    private void start(Consumer<HttpOptions.Builder> change) throws IOException {
        frontend = new RunningFrontend(RunningFrontend.options(http -> {
            http.headerTimeout = Duration.ZERO;
            http.minBodyBytesPerSecond = 0;
            http.idleTimeout = Duration.ZERO;
            http.responseStallTimeout = Duration.ZERO;
            http.closeTimeout = Duration.ofMinutes(1);
            change.accept(http);
        }));
        frontend.server.add(FakeModel.identity("later", DataType.UINT8, 0, -1).responding(requests::add));
    }
}
