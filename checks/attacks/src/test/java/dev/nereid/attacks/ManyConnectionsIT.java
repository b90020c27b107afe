package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Ten thousand clients that connect and send nothing, or only the beginning of a request. */
final class ManyConnectionsIT {
    private static final int MAX_CONNECTIONS = 10_000;

    /** File descriptors of the client process for other purposes. */
    private static final int OTHER_DESCRIPTORS = 1_000;

    /** File descriptors that the server reserves for files. */
    private static final int SERVER_DESCRIPTORS = 128;

    /** The connections of the probe and of the test itself. */
    private static final int OTHER_CLIENTS = 16;

    @RegisterExtension
    static final Victim victim = Victim.with();

    @Test
    void idleOnHttp() throws Exception {
        idle(Port.HTTP, new byte[0]);
    }

    @Test
    void idleOnHttpAfterARequest() throws Exception {
        idle(Port.HTTP, RawHttp.get("/v2/health/live"));
    }

    @Test
    void idleOnGrpc() throws Exception {
        idle(Port.GRPC, new byte[0]);
    }

    @Test
    void idleOnGrpcAfterAPreface() throws Exception {
        idle(Port.GRPC, Frames.preface(65_535));
    }

    @Test
    void idleOnMetrics() throws Exception {
        idle(Port.METRICS, new byte[0]);
    }

    @Test
    void comingAndGoing() throws Exception {
        victim.attack(() -> {
            long end = System.nanoTime() + Duration.ofSeconds(4).toNanos();
            while (System.nanoTime() < end) {
                try (HostileConnections http =
                                HostileConnections.connect(victim.server().http(), 200);
                        HostileConnections grpc =
                                HostileConnections.connect(victim.server().grpc(), 200)) {
                    http.send(RawHttp.ascii("GET /v2"));
                    grpc.send(Frames.preface(65_535));
                    Await.pause(Duration.ofMillis(50));
                }
            }
        });
    }

    private static void idle(Port port, byte[] beginning) throws Exception {
        int count = count();
        victim.attack(() -> {
            InetSocketAddress address = switch (port) {
                case HTTP -> victim.server().http();
                case GRPC -> victim.server().grpc();
                case METRICS -> victim.server().metrics();
            };
            try (HostileConnections connections = HostileConnections.connect(address, count)) {
                connections.send(beginning);
                Await.pause(Duration.ofSeconds(2));
                if (port == Port.METRICS) { // limited to an eighth of the file descriptors
                    int expected = (int) (Math.min(VictimServer.DESCRIPTORS, descriptors()) - SERVER_DESCRIPTORS) / 8;
                    assertThat(count - connections.closedByServer())
                            .as("open of " + count + ", limit " + expected)
                            .isBetween(expected - OTHER_CLIENTS, expected);
                } else {
                    assertThat(connections.closedByServer())
                            .as("closed of " + count)
                            .isZero();
                }
            }
        });
    }

    /** As many as this process may have, if those are less. */
    private static int count() throws IOException {
        return (int) Math.min(MAX_CONNECTIONS, descriptors() - OTHER_DESCRIPTORS);
    }

    private static long descriptors() throws IOException {
        Path limits = Path.of("/proc/self/limits");
        if (!Files.exists(limits)) {
            return 2_000;
        }
        String line = Files.readAllLines(limits).stream()
                .filter(each -> each.startsWith("Max open files"))
                .findFirst()
                .orElseThrow();
        return Long.parseLong(line.split(" {2,}", -1)[1].strip());
    }

    private enum Port {
        HTTP,
        GRPC,
        METRICS
    }
}
