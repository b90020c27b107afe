package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.floats;
import static dev.nereid.grpc.testing.TestFrontend.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferResponse;
import inference.ServerLiveRequest;
import io.grpc.CallOptions;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests connections that exhaust calls, memory or flow control. */
@Timeout(60)
@Tag("slow")
final class HostileConnectionIT {
    private static final byte[] REQUEST =
            request("m", "FP32", floats(1, 2, 3, 4), 4).build().toByteArray();

    private static TestFrontend start(Consumer<GrpcOptions.Builder> change) {
        return start(change, Long.MAX_VALUE);
    }

    /** Starts a front end with few calls and any number of unread bytes, for any time, but for what changes. */
    private static TestFrontend start(Consumer<GrpcOptions.Builder> change, long memory) {
        TestFrontend frontend = new TestFrontend(
                grpc -> {
                    grpc.openCalls = 400;
                    grpc.unreadBytes = Long.MAX_VALUE;
                    grpc.responseStall = Optional.empty();
                    change.accept(grpc);
                },
                memory);
        frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
        return frontend;
    }

    private static void assertServes(TestFrontend frontend) {
        assertThat(frontend.client
                        .modelInfer(request("m", "FP32", floats(1, 2), 2).build())
                        .getRawOutputContents(0))
                .isEqualTo(floats(1, 2));
    }

    @Test
    void closesAConnectionThatReadsNothing() throws Exception {
        try (TestFrontend frontend = start(grpc -> grpc.responseStall = Optional.of(Duration.ofSeconds(1)));
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 0)) {
            client.call(1, REQUEST);

            assertThat(client.readUntil(RawHttp2.GOAWAY).text()).contains("not read");
            client.readToEnd();
            frontend.awaitNoMemory();
        }
    }

    @Test
    void closesAConnectionWithManyCallsAndNoWindow() throws Exception {
        try (TestFrontend frontend = start(_ -> {});
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 0)) {
            client.calls(100, REQUEST);

            assertThat(client.readUntil(RawHttp2.GOAWAY).text()).contains("initial window");
            client.readToEnd();
            frontend.awaitNoMemory();
        }
    }

    @Test
    void closesAConnectionThatGrantsWindowAndReadsNothing() throws Exception {
        try (TestFrontend frontend = start(grpc -> grpc.responseStall = Optional.of(Duration.ofSeconds(1)));
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 0)) {
            client.call(1, REQUEST);

            TestFrontend.await(() -> !grants(client));
        }
    }

    private static boolean grants(RawHttp2 client) {
        try {
            client.frame(RawHttp2.WINDOW_UPDATE, 0, 0, new byte[] {0, 0, 0, 1});
            return true;
        } catch (IOException _) {
            return false;
        }
    }

    @Test
    void keepsResponsesInFlightUntilTheyAreReadOrTheirClientGoes() throws Exception {
        try (TestFrontend frontend = start(_ -> {})) {
            try (RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 0)) {
                client.call(1, REQUEST);
                TestFrontend.await(() -> frontend.server.requests().size() == 1);
                assertServes(frontend);
                assertThat(frontend.server.requests().getFirst().openResponses())
                        .isEqualTo(1);
            }
            TestFrontend.await(() -> frontend.server.requests().getFirst().openResponses() == 0);
        }
    }

    @Test
    void closesThoseThatDoNotReadWhenTooMuchWaitsAndServesOthers() throws Exception {
        try (TestFrontend frontend = start(_ -> {})) {
            List<RawHttp2> clients = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 0);
                clients.add(client);
                client.calls(90, REQUEST);
            }
            clients.getFirst().readToEnd(); // the other connections have no more calls than their share
            assertServes(frontend);
            for (RawHttp2 client : clients) {
                client.disconnect();
            }
        }
    }

    @Test
    void refusesCallsBeyondTheLimitInTheWordsOfGrpc() throws Exception {
        try (TestFrontend frontend = start(grpc -> grpc.openCalls = 64);
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 65_535)) {
            for (int call = 0; call < 80; call++) {
                client.headers(2 * call + 1);
            }

            RawHttp2.Frame trailers = client.readUntil(RawHttp2.HEADERS);

            assertThat(trailers.text()).contains("too many calls are open", "grpc-retry-pushback-ms");
            assertThat(frontend.server.refusals().refused(RequestProtocol.GRPC, RefusalCause.OVERLOADED))
                    .isPositive();
            RawHttp2.Frame reset = client.readUntil(RawHttp2.RST_STREAM);
            assertThat(reset.stream()).isEqualTo(trailers.stream());
            assertThat(reset.text()).as("no error").isEqualTo("\0\0\0\0");
        }
    }

    @Test
    void countsNoCallOfAClosedConnectionTwice() throws Exception {
        try (TestFrontend frontend = start(_ -> {})) {
            for (int i = 0; i < 10; i++) {
                try (RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 0)) {
                    for (int call = 0; call < 60; call++) {
                        client.call(2 * call + 1, REQUEST);
                    }
                    int calls = 60 * (i + 1);
                    TestFrontend.await(() -> frontend.server.requests().size() == calls);
                }
                frontend.awaitNoMemory();
            }
            try (RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 65_535)) {
                for (int call = 0; call < 200; call++) {
                    client.headers(2 * call + 1);
                }

                assertThat(client.readUntil(RawHttp2.HEADERS).text()).contains("too many calls are open");
            }
        }
    }

    @Test
    void closesCallsWithoutARequestOfManyConnections() throws Exception {
        try (TestFrontend frontend = start(grpc -> grpc.openCalls = 64)) {
            List<RawHttp2> clients = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 65_535);
                clients.add(client);
                for (int call = 0; call < 16; call++) {
                    client.headers(2 * call + 1);
                }
            }

            assertThat(clients.getFirst().readUntil(RawHttp2.GOAWAY).text())
                    .contains("too many calls without a request");
            for (RawHttp2 client : clients) {
                client.disconnect();
            }
        }
    }

    /** Records how a call ended. */
    private record End(BlockingQueue<Status> ends) implements StreamObserver<ModelInferResponse> {
        @Override
        public void onNext(ModelInferResponse response) {
            assertThat(response.getRawOutputContentsCount()).isEqualTo(1);
        }

        @Override
        public void onError(Throwable failure) {
            ends.add(Status.fromThrowable(failure));
        }

        @Override
        public void onCompleted() {
            ends.add(Status.OK);
        }
    }

    private static void openCalls(RawHttp2 client, int calls) throws IOException {
        for (int call = 0; call < calls; call++) {
            client.headers(2 * call + 1);
        }
    }

    @Test
    void servesManyCallsOfAConnectionWhileOthersKeepThoseWithoutARequestAndIdleConnections() throws Exception {
        ConnectionLimiter limiter = new ConnectionLimiter(0, 0);
        List<RawHttp2> clients = new ArrayList<>();
        try (TestFrontend frontend = start(grpc -> {
            grpc.openCalls = 4096;
            grpc.openConnections = limiter;
        })) {
            BlockingQueue<ReceivedRequest> calls = new LinkedBlockingQueue<>();
            frontend.server.add(FakeModel.identity("slow", DataType.FP32, 0, -1).responding(calls::add));
            for (int i = 0; i < 100; i++) {
                clients.add(RawHttp2.connect(frontend.frontend.port(), 65_535));
            }
            TestFrontend.await(() -> limiter.open() == 100);
            // 900 calls are admitted before connections have shares, and are over twice the share of the next client:
            // the first client is the one with the most calls, whichever event loop counts first.
            openCalls(clients.getFirst(), 900);
            clients.getFirst().awaitRead();
            openCalls(clients.get(1), 700);
            clients.get(1).readUntil(RawHttp2.HEADERS); // a refusal

            var honest = GRPCInferenceServiceGrpc.newStub(frontend.channel);
            BlockingQueue<Status> ends = new LinkedBlockingQueue<>();
            for (int i = 0; i < 64; i++) {
                honest.modelInfer(request("slow", "FP32", floats(i), 1).build(), new End(ends));
            }
            for (int i = 0; i < 64; i++) {
                calls.take().respondWithInputs();
            }

            for (int i = 0; i < 64; i++) {
                assertThat(ends.take().isOk()).isTrue();
            }
            assertThat(clients.getFirst().readUntil(RawHttp2.GOAWAY).text())
                    .contains("too many calls without a request");
            for (RawHttp2 client : clients) {
                client.disconnect();
            }
        }
    }

    @Test
    void keepsStreamsOfRequestsWhenOthersTakeAllCalls() throws Exception {
        try (TestFrontend frontend = start(_ -> {})) {
            List<StreamClient> streams = new ArrayList<>();
            for (int i = 0; i < 70; i++) {
                streams.add(StreamClient.open(frontend).send(request("m", "FP32", floats(1), 1)));
            }
            for (StreamClient stream : streams) {
                stream.next();
            }
            List<RawHttp2> attackers = new ArrayList<>();
            for (int i = 0; i < 30; i++) {
                RawHttp2 attacker = RawHttp2.connect(frontend.frontend.port(), 65_535);
                attackers.add(attacker);
                openCalls(attacker, 30);
            }

            attackers.getFirst().readUntil(RawHttp2.GOAWAY);

            for (StreamClient stream : streams) {
                stream.send(request("m", "FP32", floats(1, 2), 2));
                assertThat(stream.next().getInferResponse().getRawOutputContents(0))
                        .isEqualTo(floats(1, 2));
            }
            for (RawHttp2 attacker : attackers) {
                attacker.disconnect();
            }
        }
    }

    @Test
    void resetsCallsThatEndWithHeadersAndReleasesTheirBytes() throws Exception {
        try (TestFrontend frontend = start(grpc -> grpc.openCalls = 64);
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 65_535)) {
            byte[] first = new byte[10_000];
            first[1] = 0x10; // one of 256 MiB
            client.headers(1);
            client.frame(RawHttp2.DATA, 0, 1, first);
            for (int call = 1; call < 80; call++) {
                client.headers(2 * call + 1);
            }
            TestFrontend.await(() -> frontend.memory.bytesInUse() >= 10_000);

            client.trailers(1);

            RawHttp2.Frame frame = client.read();
            while (frame.stream() != 1) {
                frame = client.read();
            }
            assertThat(frame.type()).isEqualTo(RawHttp2.RST_STREAM);
            TestFrontend.await(() -> frontend.memory.bytesInUse() == 0);
        }
    }

    @Test
    void countsBytesOfMessagesAsTheyArrive() throws Exception {
        try (TestFrontend frontend = start(_ -> {}, 150_000);
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 65_535)) {
            byte[] first = new byte[10_000];
            first[1] = 0x10; // one of 256 MiB
            for (int call = 0; call < 9; call++) {
                client.headers(2 * call + 1);
                client.frame(RawHttp2.DATA, 0, 2 * call + 1, first);
            }
            TestFrontend.await(() -> frontend.memory.bytesInUse() >= 90_000);
            for (int frame = 0; frame < 10; frame++) {
                client.frame(RawHttp2.DATA, 0, 1, new byte[10_000]);
            }

            RawHttp2.Frame refusal = client.readUntil(RawHttp2.HEADERS);

            assertThat(refusal.stream()).isEqualTo(1);
            assertThat(refusal.flags() & RawHttp2.END_STREAM).isEqualTo(1);
            assertThat(refusal.text()).contains("out of memory");
            client.frame(RawHttp2.DATA, 0, 1, first); // is dropped
            assertServes(frontend);
            assertThat(frontend.memory.bytesInUse()).isBetween(80_000L, 140_000L);
            client.disconnect();
            TestFrontend.await(() -> frontend.memory.bytesInUse() == 0);
        }
    }

    @Test
    void countsNoSmallMessageWhoseRequestEndsInAFrameOfItsOwn() throws Exception {
        try (TestFrontend frontend = start(_ -> {});
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 65_535)) {
            byte[] message = ByteBuffer.allocate(5 + REQUEST.length)
                    .put((byte) 0)
                    .putInt(REQUEST.length)
                    .put(REQUEST)
                    .array();
            client.headers(1);
            client.frame(RawHttp2.DATA, 0, 1, message);
            client.call(3, REQUEST);
            assertThat(client.readUntil(RawHttp2.DATA).stream()).isEqualTo(3);
            assertThat(frontend.memory.bytesInUse())
                    .as("bytes of the first call")
                    .isLessThan(100);

            client.frame(RawHttp2.DATA, RawHttp2.END_STREAM, 1);

            assertThat(client.readUntil(RawHttp2.DATA).stream()).isEqualTo(1);
        }
    }

    @Test
    void countsWhatFollowsASmallMessage() throws Exception {
        try (TestFrontend frontend = start(_ -> {});
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 65_535)) {
            client.headers(1);
            client.frame(RawHttp2.DATA, 0, 1, new byte[] {0, 0, 0, 0, 1, 9});
            byte[] first = new byte[10_000];
            first[1] = 0x10; // one of 256 MiB
            client.frame(RawHttp2.DATA, 0, 1, first);

            TestFrontend.await(() -> frontend.memory.bytesInUse() >= 10_000);

            client.disconnect();
            TestFrontend.await(() -> frontend.memory.bytesInUse() == 0);
        }
    }

    @Test
    void forgetsMessagesThatWereReadWhenNothingArrived() throws Exception {
        try (TestFrontend frontend = start(_ -> {})) {
            BlockingQueue<ReceivedRequest> calls = new LinkedBlockingQueue<>();
            frontend.server.add(
                    FakeModel.identity("many", DataType.FP32, 0, -1).decoupled().responding(calls::add));
            int count = 10_000;
            var request =
                    request("many", "FP32", floats(new float[count]), count).build();
            StreamClient stream = StreamClient.open(frontend);
            for (int i = 0; i < 3; i++) {
                stream.send(request);
            }
            for (int i = 0; i < 3; i++) {
                calls.take().end();
            }

            TestFrontend.await(() -> frontend.memory.bytesInUse() == 0);
            stream.cancel();
        }
    }

    @Test
    void readsLongMessagesOnWorkersAndInOrder() throws Exception {
        try (TestFrontend frontend = start(_ -> {})) {
            int count = 3_000_000;
            ByteString bytes = floats(new float[count]);
            var large = request("m", "FP32", bytes, count).setId("large").build();
            var small = request("m", "FP32", floats(1), 1).setId("small").build();

            assertThat(frontend.client.modelInfer(large).getRawOutputContents(0))
                    .isEqualTo(bytes);
            assertThat(frontend.client.withCompression("gzip").modelInfer(large).getRawOutputContents(0))
                    .isEqualTo(bytes);
            StreamClient stream =
                    StreamClient.open(frontend).send(large).send(small).halfClose();
            assertThat(stream.next().getInferResponse().getId()).isEqualTo("large");
            assertThat(stream.next().getInferResponse().getId()).isEqualTo("small");
            assertThat(stream.end().isOk()).isTrue();
        }
    }

    @Test
    void closesAConnectionThatIsResetAgainAndAgain() throws Exception {
        assertFlooded(client -> {
            client.headers(client.next());
            client.raw.frame(RawHttp2.RST_STREAM, 0, client.stream, new byte[] {0, 0, 0, 8});
        });
    }

    @Test
    void closesAConnectionOfManyStreamErrors() throws Exception {
        assertFlooded(client -> {
            client.headers(client.next());
            client.raw.frame(RawHttp2.WINDOW_UPDATE, 0, client.stream, new byte[4]);
        });
    }

    @Test
    void closesAConnectionOfManySettings() throws Exception {
        assertFlooded(client -> client.raw.frame(RawHttp2.SETTINGS, 0, 0));
    }

    @Test
    void closesAConnectionOfManyPriorities() throws Exception {
        assertFlooded(client -> client.raw.frame(RawHttp2.PRIORITY, 0, 1, new byte[5]));
    }

    @Test
    void closesAConnectionOfManyEmptyFrames() throws Exception {
        assertFlooded(client -> {
            if (client.stream < 0) {
                client.headers(client.next());
            }
            client.raw.frame(RawHttp2.DATA, 0, 1);
        });
    }

    /** An action that a client repeats. */
    private interface Attack {
        void go(Flood client) throws IOException;
    }

    /** A client with a stream number. Confined to the thread of the test. */
    private static final class Flood {
        private final RawHttp2 raw;
        private int stream = -1;

        Flood(RawHttp2 raw) {
            this.raw = raw;
        }

        int next() {
            stream += 2;
            return stream;
        }

        void headers(int number) throws IOException {
            raw.headers(number);
        }
    }

    private static void assertFlooded(Attack attack) throws IOException {
        try (TestFrontend frontend = start(_ -> {});
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 65_535)) {
            Flood flood = new Flood(client);
            int sent = 0;
            try {
                for (; sent < 1_000_000; sent++) {
                    attack.go(flood);
                }
            } catch (IOException _) {
                assertThat(sent).as("closed by the server").isLessThan(1_000_000);
            }
            client.readToEnd();
            assertServes(frontend);
        }
    }

    @Test
    void closesConnectionsBeyondTheLimit() throws Exception {
        ConnectionLimiter limiter = new ConnectionLimiter(2, 0);
        try (TestFrontend frontend = start(grpc -> grpc.openConnections = limiter)) {
            assertServes(frontend);
            try (RawHttp2 second = RawHttp2.connect(frontend.frontend.port(), 65_535);
                    RawHttp2 third = RawHttp2.silent(frontend.frontend.port())) {
                second.read();
                third.readToEnd();
                assertThat(limiter.refused()).isEqualTo(1);
            }
            TestFrontend.await(() -> limiter.open() == 1);
        }
    }

    @Test
    void closesConnectionsWithoutAPreface() throws Exception {
        try (TestFrontend frontend = start(grpc -> grpc.handshakeTimeout = Optional.of(Duration.ofMillis(200)));
                RawHttp2 client = RawHttp2.silent(frontend.frontend.port())) {
            client.readToEnd();
        }
    }

    @Test
    void closesConnectionsWithoutCalls() throws Exception {
        try (TestFrontend frontend = start(grpc -> grpc.maxIdle = Optional.of(Duration.ofSeconds(1)));
                RawHttp2 client = RawHttp2.connect(frontend.frontend.port(), 65_535)) {
            client.frame(RawHttp2.SETTINGS, 1, 0); // half of the following frame never arrives
            assertThat(client.readUntil(RawHttp2.GOAWAY).text()).contains("max_idle");
        }
    }

    @Test
    void cutsTheStatusMessageOfAModel() {
        try (TestFrontend frontend = start(_ -> {})) {
            frontend.server.add(FakeModel.identity("bad", DataType.FP32, 0, -1)
                    .responding(call -> call.fail(ErrorCode.INTERNAL, "é".repeat(10_000_000))));

            Status status = failure(frontend, "bad");

            assertThat(status.getCode()).isEqualTo(Status.Code.INTERNAL);
            assertThat(status.getDescription()).startsWith("ééé").endsWith("é…").hasSize(682);
        }
    }

    @Test
    void cutsTheNamesOfUnknownMethodsAndModels() {
        try (TestFrontend frontend = start(_ -> {})) {
            assertThat(failure(frontend, "é".repeat(5_000_000)).getDescription())
                    .contains("é…'")
                    .hasSizeLessThan(400);
        }
    }

    @Test
    void cutsTheNamesOfUnknownMethods() {
        try (TestFrontend frontend = start(_ -> {})) {
            var unknown = GRPCInferenceServiceGrpc.getServerLiveMethod().toBuilder()
                    .setFullMethodName("inference.GRPCInferenceService/" + "x".repeat(3_000))
                    .build();

            assertThatThrownBy(() -> ClientCalls.blockingUnaryCall(
                            frontend.channel, unknown, CallOptions.DEFAULT, ServerLiveRequest.getDefaultInstance()))
                    .isInstanceOfSatisfying(
                            StatusRuntimeException.class,
                            failure -> assertThat(failure.getStatus().getDescription())
                                    .startsWith("Method not found: inference.GRPCInferenceService/xxx")
                                    .endsWith("x…")
                                    .hasSizeLessThan(300));
        }
    }

    @Test
    void cutsWhatStreamsQuoteOfInputs() throws Exception {
        try (TestFrontend frontend = start(_ -> {})) {
            long[] dims = new long[30];
            Arrays.fill(dims, Long.MIN_VALUE);
            var request = request("m", "FP32", floats(1), dims);
            request.getInputsBuilder(0).setName("x".repeat(3_000));

            String error = StreamClient.open(frontend).send(request).next().getErrorMessage();

            assertThat(error)
                    .startsWith("tensor 'xxx")
                    .contains("x…' contains an invalid dimension [-9223372036854775808,")
                    .endsWith("…")
                    .hasSizeLessThan(600);
        }
    }

    private static Status failure(TestFrontend frontend, String model) {
        try {
            frontend.client.modelInfer(request(model, "FP32", floats(1, 2), 2).build());
            return Status.OK;
        } catch (StatusRuntimeException e) {
            return e.getStatus();
        }
    }

    @Test
    void refusesNegativeDimensionsInTheWordsOfTheReference() {
        try (TestFrontend frontend = start(_ -> {})) {
            TestFrontend.assertFails(
                    () -> frontend.client.modelInfer(
                            request("m", "FP32", floats(1, 2, 3, 4), 1, -4).build()),
                    Status.Code.INVALID_ARGUMENT,
                    "tensor 'INPUT0' contains an invalid dimension [1,-4]");
        }
    }
}
