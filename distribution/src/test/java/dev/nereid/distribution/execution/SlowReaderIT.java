package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.google.protobuf.ByteString;
import dev.nereid.api.InferenceException;
import dev.nereid.distribution.testing.CountingServer;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.FlowWatch;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.SocketQueues;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.paced.PacedBackendProvider;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelStreamInferResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.netty.NettyChannelBuilder;
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests decoupled models whose clients read slowly. Models that mind the flow lose no client and need little memory;
 * one that does not still reaches the limits.
 */
@Timeout(180)
final class SlowReaderIT {
    private static final int HEEDLESS = 0;
    private static final int BY_ACTION = 1;
    private static final int BY_THREAD = 2;

    private static final int COUNT = 100_000;

    private static final int SLOW_COUNT = 2_000;
    private static final int SLOW_STEP = 20;
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(15);
    private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(300);
    private static final int TEXT_BYTES = 1_000;
    private static final int DIGITS = 8;
    private static final int WINDOW = 64 << 10;
    private static final long MIB = 1 << 20;
    private static final long TIMEOUT_SECONDS = 120;

    @TempDir
    private Path directory;

    private NereidServer nereid;
    private FlowWatch watch;
    private CountingServer counting;
    private TestServer server;
    private ManagedChannel channel;

    @BeforeEach
    void start() throws IOException, InterruptedException {
        Repository models = new Repository(directory.resolve("models")).model("paced", """
                backend: "paced"
                max_batch_size: 0
                model_transaction_policy { decoupled: true }
                input [ { name: "COUNT" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "MODE" data_type: TYPE_INT32 dims: [ 1 ] } ]
                output [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
                """);
        nereid = NereidServer.start(TestServer.of(models)
                .withPlugins(GatedPlugin.pack(directory.resolve("plugins"), PacedBackendProvider.class)));
        watch = new FlowWatch(nereid.memory());
        counting = new CountingServer(nereid, watch::of);
        server = TestServer.open(nereid, port -> counting);
        // A fixed window, and listeners on the client's event loop: what the client has not received is in the server.
        channel = NettyChannelBuilder.forAddress("127.0.0.1", server.grpcPort())
                .usePlaintext()
                .directExecutor()
                .flowControlWindow(WINDOW)
                .build();
    }

    @AfterEach
    void stop() throws InterruptedException {
        channel.shutdownNow();
        assertThat(channel.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
        counting.awaitCompletion();
        Eventually.holds("no memory in use", 20, () -> nereid.memory().bytesInUse() == 0);
        server.close();
    }

    @ParameterizedTest
    @ValueSource(ints = {BY_ACTION, BY_THREAD})
    void losesNothingOverGrpc(int mode) throws Exception {
        GrpcStream stream = new GrpcStream(mode, COUNT);

        for (int i = 0; i < SLOW_COUNT; i += SLOW_STEP) {
            stream.call.request(SLOW_STEP);
            LockSupport.parkNanos(PAUSE_NANOS);
        }
        stream.call.request(Integer.MAX_VALUE);

        assertThat(stream.end()).isEqualTo(Status.OK);
        assertThat(stream.next).isEqualTo(COUNT);
        assertThat(watch.sent()).isEqualTo(COUNT);
        assertThat(watch.sentAgainstTheFlow()).isZero();
        assertThat(watch.maxUnreceived() * 2 * TEXT_BYTES).isLessThan(2 * MIB);
        assertThat(watch.maxMemory()).isLessThan(MIB);
    }

    @ParameterizedTest
    @ValueSource(ints = {BY_ACTION, BY_THREAD})
    void losesNothingOverHttp(int mode) throws Exception {
        try (HttpStream stream = new HttpStream(mode, COUNT)) {
            long sent;
            OptionalLong inKernel;
            do { // a busy processor makes a pause too
                sent = awaitPause();
                inKernel = SocketQueues.unread(server.httpPort(), stream.port());
            } while (watch.sent() != sent);
            for (int i = 0; i < SLOW_COUNT; i++) {
                stream.readNext();
                if (i % SLOW_STEP == 0) {
                    LockSupport.parkNanos(PAUSE_NANOS);
                }
            }
            if (inKernel.isPresent()) {
                assertThat(sent * stream.bytesPerResponse() - inKernel.getAsLong())
                        .as("bytes in the server while the client did not read")
                        .isBetween(0L, MIB);
            }
            stream.readToTheEnd();

            assertThat(stream.next).isEqualTo(COUNT);
            assertThat(watch.sent()).isEqualTo(COUNT);
            assertThat(watch.sentAgainstTheFlow()).isZero();
            assertThat(watch.maxMemory()).isLessThan(MIB);
        }
    }

    @Test
    void endsAStreamWhoseModelGoesOn() throws Exception {
        GrpcStream stream = new GrpcStream(HEEDLESS, Integer.MAX_VALUE);
        counting.awaitCompletion();
        stream.call.request(Integer.MAX_VALUE);

        Status end = stream.end();

        assertThat(end.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(end.getDescription()).startsWith("the client reads the stream too slowly: ");
        assertThat(watch.sentAgainstTheFlow()).isPositive();
    }

    @Test
    void closesAConnectionWhoseModelGoesOn() throws Exception {
        try (HttpStream stream = new HttpStream(HEEDLESS, Integer.MAX_VALUE)) {
            counting.awaitCompletion();

            assertThat(stream.isCutOff()).isTrue();
            assertThat(watch.sentAgainstTheFlow()).isPositive();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {BY_ACTION, BY_THREAD})
    void endsAPausedModelWhoseClientIsGone(int mode) throws Exception {
        GrpcStream grpc = new GrpcStream(mode, COUNT);
        awaitPause();
        grpc.call.cancel("the test goes", null);
        counting.awaitCompletion();

        long before = watch.sent();
        HttpStream http = new HttpStream(mode, COUNT);
        Eventually.holds("responses over HTTP", 20, () -> watch.sent() > before);
        awaitPause();
        http.close();
        counting.awaitCompletion();
        assertThat(watch.sent()).isLessThan(COUNT);
    }

    /** The request is completed when the time is over; its model is notified, and ends it. */
    @ParameterizedTest
    @ValueSource(ints = {BY_ACTION, BY_THREAD})
    void endsAPausedModelWhenTheServerStops(int mode) throws Exception {
        GrpcStream stream = new GrpcStream(mode, COUNT);
        awaitPause();

        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(() -> nereid.closeWithin(Duration.ofMillis(100)))
                .withMessageContaining("Exit timeout expired");
        counting.awaitCompletion();
        stream.call.request(Integer.MAX_VALUE);

        assertThat(stream.end()).isEqualTo(Status.OK);
        assertThat(stream.error).isNotEmpty();
        assertThat((long) stream.next).isEqualTo(watch.sent()).isLessThan(COUNT);
    }

    /** Other clients of the stream's connection and of the model are served meanwhile. */
    @Test
    void servesOthersWhileAModelIsPaused() throws Exception {
        GrpcStream slow = new GrpcStream(BY_ACTION, COUNT);
        awaitPause();

        List<GrpcStream> others = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            GrpcStream other = new GrpcStream(BY_ACTION, 3);
            other.call.request(4);
            others.add(other);
        }
        for (GrpcStream other : others) {
            assertThat(other.end()).isEqualTo(Status.OK);
            assertThat(other.next).isEqualTo(3);
        }
        slow.call.request(Integer.MAX_VALUE);
        assertThat(slow.end()).isEqualTo(Status.OK);
        assertThat(slow.next).isEqualTo(COUNT);
    }

    /** Waits until the model has paused; returns how many responses it has sent. */
    private long awaitPause() {
        long[] last = {-1, System.nanoTime()};
        Eventually.holds("a pause", 20, () -> {
            long now = System.nanoTime();
            if (watch.sent() != last[0]) {
                last[0] = watch.sent();
                last[1] = now;
            }
            return last[0] > 0 && now - last[1] > QUIET_NANOS;
        });
        return last[0];
    }

    /** Checks the number in front of a text and its length. */
    private static void check(int expected, String text) {
        assertThat(text).hasSize(TEXT_BYTES);
        assertThat(Integer.parseInt(text.substring(0, DIGITS))).isEqualTo(expected);
    }

    /** A gRPC stream with one request. It reads what the test requests. */
    private final class GrpcStream extends ClientCall.Listener<ModelStreamInferResponse> {
        final ClientCall<ModelInferRequest, ModelStreamInferResponse> call;
        volatile int next;
        volatile String error = "";
        private final CompletableFuture<Status> end = new CompletableFuture<>();

        GrpcStream(int mode, int count) {
            call = channel.newCall(GRPCInferenceServiceGrpc.getModelStreamInferMethod(), CallOptions.DEFAULT);
            call.start(this, new Metadata());
            ModelInferRequest.Builder request = ModelInferRequest.newBuilder().setModelName("paced");
            add(request, "COUNT", count);
            add(request, "MODE", mode);
            call.sendMessage(request.build());
            call.halfClose();
        }

        private static void add(ModelInferRequest.Builder request, String input, int value) {
            request.addInputsBuilder().setName(input).setDatatype("INT32").addShape(1);
            request.addRawInputContents(ByteString.copyFrom(ByteBuffer.allocate(Integer.BYTES)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putInt(value)
                    .flip()));
        }

        @Override
        @SuppressWarnings("NonAtomicVolatileUpdate") // by one thread
        public void onMessage(ModelStreamInferResponse message) {
            if (!message.getErrorMessage().isEmpty()) {
                error = message.getErrorMessage();
                return;
            }
            try {
                check(
                        next,
                        message.getInferResponse()
                                .getRawOutputContents(0)
                                .substring(Integer.BYTES)
                                .toStringUtf8());
                next++;
                watch.received();
            } catch (RuntimeException | AssertionError e) {
                end.completeExceptionally(e);
            }
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            end.complete(status);
        }

        Status end() throws Exception {
            return end.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }

    /** A connection with one request to {@code generate_stream}, and a small window. Confined to the test's thread. */
    private final class HttpStream implements AutoCloseable {
        private static final int TIMEOUT_MILLIS = 60_000;

        int next;
        private final Socket socket = new Socket();
        private final InputStream in;
        private int bytesPerResponse;

        HttpStream(int mode, int count) throws IOException {
            socket.setReceiveBufferSize(WINDOW);
            socket.setSoTimeout(TIMEOUT_MILLIS);
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), server.httpPort()));
            in = new BufferedInputStream(socket.getInputStream());
            String body = "{\"COUNT\":" + count + ",\"MODE\":" + mode + "}";
            socket.getOutputStream()
                    .write(HttpRequests.post(
                            "/v2/models/paced/generate_stream", body.getBytes(StandardCharsets.UTF_8)));
        }

        int port() {
            return socket.getLocalPort();
        }

        /** Returns the bytes of a response, which all have the same. */
        int bytesPerResponse() {
            return bytesPerResponse;
        }

        void readNext() throws IOException {
            if (next == 0) {
                assertThat(line()).isEqualTo("HTTP/1.1 200 OK");
                while (!line().isEmpty()) {
                    // a header
                }
            }
            String length = line();
            String event = new String(in.readNBytes(Integer.parseInt(length, 16)), StandardCharsets.UTF_8);
            assertThat(line()).isEmpty();
            int start = event.indexOf("\"TEXT\":\"") + "\"TEXT\":\"".length();
            check(next, event.substring(start, start + TEXT_BYTES));
            bytesPerResponse = length.length() + event.length() + 4;
            next++;
            watch.received();
        }

        void readToTheEnd() throws IOException {
            while (next < COUNT) {
                readNext();
            }
            assertThat(line()).isEqualTo("0");
            assertThat(line()).isEmpty();
        }

        /** Returns whether the server closed the connection within the responses. */
        boolean isCutOff() throws IOException {
            try {
                return !new String(in.readAllBytes(), StandardCharsets.UTF_8).endsWith("\r\n0\r\n\r\n");
            } catch (SocketException e) {
                return true;
            }
        }

        private String line() throws IOException {
            StringBuilder line = new StringBuilder();
            for (int read = in.read(); read != '\n'; read = in.read()) {
                if (read < 0) {
                    throw new EOFException("closed after '" + line + "' (expected: a line)");
                }
                line.append((char) read);
            }
            return line.toString().strip();
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }
}
