package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.EnumSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Tests more clients than the server has file descriptors. Connected clients are served, and others after some have
 * disconnected.
 */
final class DescriptorsIT {
    private static final int DESCRIPTORS = 256;

    @RegisterExtension
    static final Victim victim = Victim.withDescriptors(DESCRIPTORS);

    @Test
    void exhaustedOverHttp() throws Exception {
        exhaust(victim.server().http());
    }

    @Test
    void exhaustedOverGrpc() throws Exception {
        exhaust(victim.server().grpc());
    }

    @Test
    void exhaustedOverTheMetricsPort() throws Exception {
        exhaust(victim.server().metrics());
    }

    private static void exhaust(InetSocketAddress address) throws Exception {
        VictimServer server = victim.server();
        victim.attackOthersThan(EnumSet.of(Probe.Transport.HTTP, Probe.Transport.GRPC), () -> {
            double before = server.processorSeconds();
            try (HostileConnections connections =
                    HostileConnections.attempt(address, 2 * DESCRIPTORS, Duration.ofSeconds(1))) {
                connections.send(new byte[] {'P'});
                Await.pause(Duration.ofSeconds(3));
            }
            // An event loop that tries to accept again and again takes all of one processor.
            assertThat(server.processorSeconds() - before)
                    .as("processor seconds")
                    .isLessThan(2);
            Await.until("new clients are served", Duration.ofSeconds(3), () -> isServed(server));
        });
    }

    private static boolean isServed(VictimServer server) {
        Tensor input = Tensor.floats("new", 1);
        try (RawHttp http = RawHttp.connect(server.http()).timeout(1_000);
                RawHttp2 grpc = RawHttp2.connect(server.grpc())) {
            return http.exchange(RawHttp.infer(Models.ECHO, input)).status() == 200
                    && grpc.call(Frames.INFER, InferMessage.request(Models.ECHO, input))
                                    .status()
                            == 0;
        } catch (IOException e) {
            return false;
        }
    }
}
