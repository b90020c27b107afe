package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests clients that send little, slowly or nothing. They occupy only memory for what they have sent, and for a limited
 * time.
 */
final class SlowClientsIT {
    private static final Duration SECOND = Duration.ofSeconds(1);

    /** Memory of a few connections, regardless of announced lengths. */
    private static final long MAX_MEMORY_OF_A_PROMISE = 128 << 10;

    private static final byte[] HEADER = RawHttp.ascii("X-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");

    /** Short timeouts for the tests; a body's rate is checked ten seconds after its start. */
    @RegisterExtension
    static final Victim victim = Victim.with(
            "--http-header-timeout-secs=2",
            "--http-min-body-rate=1024",
            "--http-idle-timeout-secs=2",
            "--grpc-max-connection-idle-ms=2000");

    @Test
    void headersOfAByteASecondEndAtTheirDeadline() throws Exception {
        victim.attack(() -> {
            try (HostileConnections http =
                            HostileConnections.connect(victim.server().http(), 1_000);
                    HostileConnections metrics =
                            HostileConnections.connect(victim.server().metrics(), 300)) {
                http.send(RawHttp.ascii("POST " + RawHttp.path(Models.ECHO) + " HTTP/1.1\r\nHost: victim\r\n"));
                metrics.send(RawHttp.ascii("GET /metrics HTTP/1.1\r\n"));
                for (int i = 0; i < 6 && !(http.isClosed() && metrics.isClosed()); i++) {
                    http.send(new byte[] {HEADER[i]});
                    metrics.send(new byte[] {HEADER[i]});
                    Await.pause(SECOND);
                }
                assertThat(http.closedByServer()).as("HTTP").isEqualTo(http.size());
                assertThat(metrics.closedByServer()).as("metrics").isEqualTo(metrics.size());
            }
        });
    }

    @Test
    void connectionsThatAreIdleEndToo() throws Exception {
        victim.attack(() -> {
            try (HostileConnections http =
                            HostileConnections.connect(victim.server().http(), 500);
                    HostileConnections active =
                            HostileConnections.connect(victim.server().http(), 200);
                    HostileConnections metrics =
                            HostileConnections.connect(victim.server().metrics(), 200)) {
                active.send(RawHttp.get("/v2/health/live"));
                List<String> grpc = ConcurrentClients.run(50, SlowClientsIT::endOfAnIdleConnection);
                Await.holds(Duration.ofSeconds(8), () -> http.isClosed() && active.isClosed() && metrics.isClosed());
                assertThat(http.closedByServer()).as("HTTP").isEqualTo(http.size());
                assertThat(active.closedByServer()).as("HTTP after a request").isEqualTo(active.size());
                assertThat(metrics.closedByServer()).as("metrics").isEqualTo(metrics.size());
                assertThat(grpc).as("gRPC").allMatch(end -> end.contains("GOAWAY 0"));
            }
        });
    }

    @Test
    void bodiesOfTenBytesASecondEndAfterTheGrace() throws Exception {
        victim.attack(() -> {
            try (HostileConnections http =
                            HostileConnections.connect(victim.server().http(), 500);
                    HostileConnections grpc =
                            HostileConnections.connect(victim.server().grpc(), 200)) {
                http.send(RawHttp.header(RawHttp.path(Models.ECHO), 1 << 20));
                byte[] begin = RawHttp.concat(Frames.preface(65_535), Frames.call(1, Frames.INFER));
                for (int i = 0; i < 25 && !http.isClosed(); i++) {
                    http.send(new byte[10]);
                    grpc.send(new byte[] {begin[i]});
                    Await.pause(SECOND);
                }
                assertThat(http.closedByServer()).isEqualTo(http.size());
            }
        });
    }

    @ParameterizedTest
    @ValueSource(ints = {160, 1_000})
    void promisesOf50MegabytesCostWhatHasArrived(int clients) throws Exception {
        victim.attack(() -> {
            try (HostileConnections connections =
                    HostileConnections.connect(victim.server().http(), clients)) {
                connections.send(RawHttp.header(RawHttp.path(Models.ECHO), 50_000_000));
                for (int i = 0; i < 3; i++) {
                    connections.send(new byte[1_024]);
                    Await.pause(SECOND);
                    assertThat(victim.server().tensorBytes())
                            .as("tensor memory")
                            .isLessThan(clients * MAX_MEMORY_OF_A_PROMISE);
                }
            }
        });
    }

    @Test
    void promisesOverGrpcCostWhatHasArrived() throws Exception {
        victim.attack(() -> {
            try (HostileConnections connections =
                    HostileConnections.connect(victim.server().grpc(), 1_000)) {
                byte[] begin = InferMessage.framed(0, 50_000_000, new byte[1_024]);
                connections.send(RawHttp.concat(
                        Frames.preface(65_535), Frames.call(1, Frames.INFER), Frames.data(1, false, begin)));
                Await.pause(SECOND.multipliedBy(2));
                connections.send(Frames.data(1, false, new byte[1_024]));
                Await.pause(SECOND);
                assertThat(victim.server().tensorBytes())
                        .as("tensor memory")
                        .isLessThan(connections.size() * MAX_MEMORY_OF_A_PROMISE);
            }
        });
    }

    @Test
    void aLongInferenceIsNotIdle() throws Exception {
        victim.attack(() -> {
            Tensor input = Tensor.floats("long", 1, 2, 3);
            try (RawHttp http = RawHttp.connect(victim.server().http());
                    RawHttp2 grpc = RawHttp2.connect(victim.server().grpc())) {
                RawHttp2.Call call =
                        grpc.begin(Frames.INFER, InferMessage.framed(InferMessage.request(Models.SLOW, input)));
                assertThat(http.exchange(RawHttp.infer(Models.SLOW, input)).tensors())
                        .isEqualTo(input.data());
                assertThat(InferMessage.output(grpc.await(call).message())).isEqualTo(input.data());
            }
        });
    }

    @Test
    void aQuietStreamIsNotIdle() throws Exception {
        victim.attack(() -> {
            Tensor input = Tensor.floats("long", 1, 2, 3);
            try (RawHttp http = RawHttp.connect(victim.server().http());
                    RawHttp2 grpc = RawHttp2.connect(victim.server().grpc())) {
                RawHttp2.Call call = grpc.begin(
                        Frames.STREAM_INFER, InferMessage.framed(InferMessage.request(Models.SLOW, input)), false);
                RawHttp.Response response = http.exchange(RawHttp.post(
                        "/v2/models/" + Models.SLOW + "/generate_stream", RawHttp.ascii("{\"INPUT0\":[1,2,3]}")));
                assertThat(response.text()).contains("\"OUTPUT0\":[1.0,2.0,3.0]");
                assertThat(InferMessage.streamedOutput(grpc.awaitMessage(call).message()))
                        .isEqualTo(input.data());
                grpc.sendData(call, new byte[0], true);
                assertThat(grpc.await(call).status()).isEqualTo(RawHttp2.Call.OK);
            }
        });
    }

    /** Follows the protocol without making calls. Returns the last message of the server. */
    private static String endOfAnIdleConnection() throws IOException {
        try (RawHttp2 connection = RawHttp2.connect(victim.server().grpc())) {
            connection.timeout(8_000);
            return connection.awaitEnd();
        }
    }
}
