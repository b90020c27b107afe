package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.distribution.flags.EndpointFlags;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.process.EventLoops;
import dev.nereid.distribution.process.StartException;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(60)
final class PortsTest {
    private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();

    @ParameterizedTest
    @CsvSource({"http, HTTP, ''", "grpc, GRPC, ''", "metrics, Metrics, ''", "http, HTTP, --http-address=0.0.0.0"})
    void findsABusyPortWithoutOpeningIt(String name, String service, String more) throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, LOOPBACK)) {
            EndpointFlags flags = flags("--" + name + "-port=" + taken.getLocalPort(), more);
            String address = more.isEmpty() ? "127.0.0.1" : "0.0.0.0";

            assertThatThrownBy(() -> Ports.check(flags))
                    .isInstanceOf(StartException.class)
                    .hasMessage(
                            "failed to start %3$s service: Unavailable - Socket '%4$s:%2$d' already in use;"
                                    + " --%1$s-port: %2$d (expected: a free port)",
                            name, taken.getLocalPort(), service, address);
        }
    }

    @Test
    void ignoresABusyPortThatIsNotOpened() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, LOOPBACK)) {
            EndpointFlags flags = flags("--grpc-port=" + taken.getLocalPort(), "--allow-grpc=false");

            assertThatCode(() -> Ports.check(flags)).doesNotThrowAnyException();
        }
    }

    @Test
    void findsAnAddressOfAnotherMachineAndUnusableFiles(@TempDir Path directory) throws Exception {
        Path file = Files.writeString(directory.resolve("file.pem"), "no certificate");
        EndpointFlags elsewhere = flags("--grpc-address=192.0.2.1", "--grpc-port=8001");
        EndpointFlags http = flags("--http-use-ssl=true", "--http-server-cert=" + file, "--http-server-key=" + file);
        EndpointFlags grpc = flags("--grpc-use-ssl=true", "--grpc-server-cert=" + file, "--grpc-server-key=" + file);

        assertThatThrownBy(() -> Ports.check(elsewhere))
                .isInstanceOf(StartException.class)
                .hasMessageStartingWith("--grpc-port: 8001 (expected: an address of this machine in --grpc-address");
        assertThatThrownBy(() -> Ports.check(http))
                .isInstanceOf(StartException.class)
                .hasMessageStartingWith("--http-server-cert: ");
        assertThatThrownBy(() -> Ports.check(grpc))
                .isInstanceOf(StartException.class)
                .hasMessageStartingWith("--grpc-use-ssl: ");
    }

    /** A port whose last server has just ended is free, though connections to it still wait for their end. */
    @Test
    void acceptsAPortWithClosedConnections() throws Exception {
        int port;
        try (ServerSocket server = new ServerSocket(0, 1, LOOPBACK);
                Socket client = new Socket(LOOPBACK, server.getLocalPort())) {
            port = server.getLocalPort();
            server.accept().close();
            assertThat(client.getInputStream().read()).isNegative();
        }

        assertThatCode(() -> Ports.check(flags("--http-port=" + port))).doesNotThrowAnyException();
    }

    @Test
    void opensHttpWhenTheOthersListen() throws Exception {
        for (int i = 0; i < 3; i++) {
            int http = freePort();
            int grpc = freePort();
            int metrics = freePort();
            CompletableFuture<List<Integer>> refused =
                    CompletableFuture.supplyAsync(() -> refusedOnceOpen(http, grpc, metrics));

            try (LeakCheckingMemory memory = new LeakCheckingMemory();
                    EventLoops loops = EventLoops.start(1)) {
                Ports ports = Ports.open(
                        flags("--http-port=" + http, "--grpc-port=" + grpc, "--metrics-port=" + metrics),
                        loops,
                        new FakeInferenceServer(memory),
                        Duration.ZERO);
                try {
                    assertThat(refused.get(30, TimeUnit.SECONDS)).isEmpty();
                } finally {
                    ports.close();
                }
            }
        }
    }

    /** Waits until a port accepts connections, and returns which of the others do not. */
    private static List<Integer> refusedOnceOpen(int first, int... others) {
        while (!accepts(first)) {
            Thread.onSpinWait();
        }
        List<Integer> refused = new ArrayList<>();
        for (int port : others) {
            if (!accepts(port)) {
                refused.add(port);
            }
        }
        return refused;
    }

    private static boolean accepts(int port) {
        try (Socket socket = new Socket(LOOPBACK, port)) {
            return socket.isConnected();
        } catch (IOException _) {
            return false;
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, LOOPBACK)) {
            return socket.getLocalPort();
        }
    }

    /** Reads flags; ports that they do not name are free ones. */
    private static EndpointFlags flags(String... arguments) throws Exception {
        EndpointFlags endpoints = new EndpointFlags();
        Flags flags = new Flags();
        endpoints.declare(flags);
        List<String> all = new ArrayList<>(List.of("--http-port=0", "--grpc-port=0", "--metrics-port=0"));
        all.addAll(Arrays.stream(arguments).filter(text -> !text.isEmpty()).toList());
        flags.read(all, Map.of());
        endpoints.check();
        return endpoints;
    }
}
