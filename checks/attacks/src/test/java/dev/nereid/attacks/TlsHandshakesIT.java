package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.Comparator;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Clients that start TLS handshakes and never finish them. */
final class TlsHandshakesIT {
    private static final int CLIENTS = 500;

    /** A record of 512 bytes is announced, and a ClientHello of 508 begins. */
    private static final byte[] HALF_A_HELLO = {0x16, 3, 1, 2, 0, 1, 0, 1, (byte) 0xfc, 3, 3, 0, 0, 0, 0};

    private static Path directory;

    @RegisterExtension
    static final Victim victim = Victim.with(() -> new String[] {
                "--tls-handshake-timeout-secs=2",
                "--http-use-ssl=true",
                "--http-server-cert=" + directory.resolve("cert.pem"),
                "--http-server-key=" + directory.resolve("key.pem"),
                "--grpc-use-ssl=true",
                "--grpc-server-cert=" + directory.resolve("cert.pem"),
                "--grpc-server-key=" + directory.resolve("key.pem"),
            })
            .connecting(TlsHandshakesIT::connect);

    @BeforeAll
    static void certify() throws IOException, InterruptedException {
        directory = Files.createTempDirectory("nereid-attacks-tls-");
        boolean made;
        try {
            made = new ProcessBuilder(("openssl req -x509 -days 2 -subj /CN=victim -newkey ec -pkeyopt"
                                            + " ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem")
                                    .split(" "))
                            .directory(directory.toFile())
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException e) {
            made = false;
        }
        assumeTrue(made, "not installed: openssl");
    }

    @AfterAll
    static void forget() throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder())
                    .forEach(file -> file.toFile().delete());
        }
    }

    @Test
    void neverBegunOverHttp() throws Exception {
        endsAfterItsTime(victim.server().http(), new byte[0]);
    }

    @Test
    void neverEndedOverHttp() throws Exception {
        endsAfterItsTime(victim.server().http(), HALF_A_HELLO);
    }

    @Test
    void neverBegunOverGrpc() throws Exception {
        endsAfterItsTime(victim.server().grpc(), new byte[0]);
    }

    @Test
    void neverEndedOverGrpc() throws Exception {
        endsAfterItsTime(victim.server().grpc(), HALF_A_HELLO);
    }

    @Test
    void plainTextHarmsNoOtherClient() throws Exception {
        victim.attack(() -> {
            try (HostileConnections http =
                            HostileConnections.connect(victim.server().http(), CLIENTS);
                    HostileConnections grpc =
                            HostileConnections.connect(victim.server().grpc(), CLIENTS)) {
                http.send(RawHttp.get("/v2"));
                grpc.send(Frames.preface(65_535));
                Await.until(
                        "closed",
                        Duration.ofSeconds(5),
                        () -> http.closedByServer() + grpc.closedByServer() == 2 * CLIENTS);
            }
        });
    }

    private static void endsAfterItsTime(InetSocketAddress address, byte[] beginning) throws Exception {
        victim.attack(() -> {
            try (HostileConnections connections = HostileConnections.connect(address, CLIENTS)) {
                connections.send(beginning);
                Await.holds(Duration.ofSeconds(5), () -> connections.closedByServer() == CLIENTS);
                assertThat(connections.closedByServer()).isEqualTo(CLIENTS);
            }
        });
    }

    private static Socket connect(InetSocketAddress address) throws IOException {
        Socket plain = RawHttp.socket(address);
        try {
            SSLSocket encrypted = (SSLSocket)
                    trusting().getSocketFactory().createSocket(plain, address.getHostString(), address.getPort(), true);
            SSLParameters parameters = encrypted.getSSLParameters();
            parameters.setApplicationProtocols(
                    new String[] {address.equals(victim.server().grpc()) ? "h2" : "http/1.1"});
            encrypted.setSSLParameters(parameters);
            encrypted.startHandshake();
            return encrypted;
        } catch (IOException | GeneralSecurityException e) {
            plain.close();
            throw new IOException(e);
        }
    }

    /** The identity of the server does not matter here. */
    private static SSLContext trusting() throws GeneralSecurityException {
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {new AnyServer()}, null);
        return context;
    }

    private static final class AnyServer implements X509TrustManager {
        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) {}

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
