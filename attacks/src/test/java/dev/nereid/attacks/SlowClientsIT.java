package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Clients that send little, slowly or nothing: they cost what they have sent, and not for ever. */
final class SlowClientsIT {
    private static final Duration SECOND = Duration.ofSeconds(1);

    /** Time-outs as short as the tests can wait for; a body's rate is looked at ten seconds after its begin. */
    @RegisterExtension
    static final Victim victim = Victim.with(
            "--http-header-timeout-secs=2",
            "--http-min-body-rate=1024",
            "--http-idle-timeout-secs=2",
            "--grpc-max-connection-idle-ms=2000");

    private static final byte[] HEADER = RawHttp.ascii("X-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");

    @Test
    void headersOfAByteASecondEndAtTheirDeadline() throws Exception {
        victim.attack(() -> {
            try (Crowd crowd = Crowd.connect(victim.server().http(), 1_000)) {
                crowd.send(RawHttp.ascii("POST " + RawHttp.path(Models.ECHO) + " HTTP/1.1\r\nHost: victim\r\n"));
                for (int i = 0; i < 6 && crowd.closedByServer() < crowd.size(); i++) {
                    crowd.send(new byte[] {HEADER[i]});
                    Waiting.pause(SECOND);
                }
                assertThat(crowd.closedByServer()).isEqualTo(crowd.size());
            }
        });
    }

    @Test
    void connectionsWithoutAnyByteEndToo() throws Exception {
        victim.attack(() -> {
            try (Crowd http = Crowd.connect(victim.server().http(), 500);
                    Crowd grpc = Crowd.connect(victim.server().grpc(), 500);
                    Crowd greeted = Crowd.connect(victim.server().grpc(), 200)) {
                greeted.send(Frames.preface(65_535));
                Waiting.holds(Duration.ofSeconds(8), () -> http.closedByServer() == http.size());
                assertThat(http.closedByServer()).as("HTTP").isEqualTo(http.size());
                Waiting.holds(Duration.ofSeconds(8), () -> greeted.closedByServer() == greeted.size());
                assertThat(greeted.closedByServer()).as("gRPC after its preface").isEqualTo(greeted.size());
            }
        });
    }

    @Test
    void bodiesOfTenBytesASecondEndAfterTheGrace() throws Exception {
        victim.attack(() -> {
            try (Crowd crowd = Crowd.connect(victim.server().http(), 500)) {
                crowd.send(RawHttp.head(RawHttp.path(Models.ECHO), 1 << 20));
                for (int i = 0; i < 15 && crowd.closedByServer() < crowd.size(); i++) {
                    crowd.send(new byte[10]);
                    Waiting.pause(SECOND);
                }
                assertThat(crowd.closedByServer()).isEqualTo(crowd.size());
            }
        });
    }

    @Test
    void promisesOf50MegabytesCostWhatHasArrived() throws Exception {
        for (int clients : new int[] {160, 1_000}) {
            victim.attack(() -> {
                try (Crowd crowd = Crowd.connect(victim.server().http(), clients)) {
                    crowd.send(RawHttp.head(RawHttp.path(Models.ECHO), 50_000_000));
                    crowd.send(new byte[1_024]);
                    for (int i = 0; i < 4; i++) {
                        Waiting.pause(SECOND);
                        crowd.send(new byte[1_024]);
                        assertThat(victim.server().tensorBytes())
                                .as("tensor memory of " + clients + " clients")
                                .isLessThan(128L << 10 << 10);
                    }
                }
            });
        }
    }

    @Test
    void promisesOverGrpcCostWhatHasArrived() throws Exception {
        victim.attack(() -> {
            try (Crowd crowd = Crowd.connect(victim.server().grpc(), 1_000)) {
                byte[] begin = InferMessage.framed(0, 50_000_000, new byte[1_024]);
                crowd.send(RawHttp.concat(
                        Frames.preface(65_535), Frames.call(1, Frames.INFER), Frames.data(1, false, begin)));
                Waiting.pause(SECOND.multipliedBy(3));
                crowd.send(Frames.data(1, false, new byte[1_024]));
                Waiting.pause(SECOND);
            }
        });
    }

    @Test
    void slowBeginningsOfGrpcHarmNobody() throws Exception {
        victim.attack(() -> {
            byte[] begin = RawHttp.concat(Frames.preface(65_535), Frames.call(1, Frames.INFER));
            try (Crowd crowd = Crowd.connect(victim.server().grpc(), 500)) {
                for (int i = 0; i < 30; i++) {
                    crowd.send(new byte[] {begin[i]});
                    Waiting.pause(Duration.ofMillis(100));
                }
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
                assertThat(http.ask(RawHttp.infer(Models.SLOW, input)).tensors()).isEqualTo(input.data());
                assertThat(InferMessage.output(grpc.await(call).message())).isEqualTo(input.data());
            }
        });
    }

    @Test
    void theMetricsPortEndsThemToo() throws Exception {
        victim.attack(() -> {
            try (Crowd silent = Crowd.connect(victim.server().metrics(), 300);
                    Crowd slow = Crowd.connect(victim.server().metrics(), 300)) {
                slow.send(RawHttp.ascii("GET /metrics HTTP/1.1\r\n"));
                for (int i = 0; i < 8 && silent.closedByServer() + slow.closedByServer() < 600; i++) {
                    slow.send(new byte[] {HEADER[i]});
                    Waiting.pause(SECOND);
                }
                assertThat(slow.closedByServer()).as("slow headers").isEqualTo(slow.size());
                assertThat(silent.closedByServer()).as("silent").isEqualTo(silent.size());
            }
        });
    }
}
