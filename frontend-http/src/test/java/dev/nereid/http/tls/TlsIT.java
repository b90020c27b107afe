package dev.nereid.http.tls;

import static dev.nereid.http.RawHttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.api.tls.TlsFiles;
import dev.nereid.api.tls.TlsFilesException;
import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.Certificate;
import java.time.Duration;
import java.util.Optional;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Encrypted connections. */
@Timeout(120)
@Tag("slow")
class TlsIT {
    @TempDir
    private static Path made;

    private static TestCertificate first;
    private static TestCertificate second;
    private static TestCertificate client;

    @TempDir
    private Path directory;

    private Path certificate;
    private Path key;
    private Optional<RunningFrontend> running = Optional.empty();

    @BeforeAll
    static void make() throws Exception {
        first = TestCertificate.make(made, "first", "EC");
        second = TestCertificate.make(made, "second", "RSA");
        client = TestCertificate.make(made, "client", "EC");
    }

    @BeforeEach
    void writeFiles() throws IOException, GeneralSecurityException {
        certificate = TestCertificate.put(directory.resolve("server.crt"), first.certificatePem());
        key = TestCertificate.put(directory.resolve("server.key"), first.keyPem());
    }

    @AfterEach
    void stop() {
        running.ifPresent(RunningFrontend::close);
    }

    @Test
    void respondsOverAnEncryptedConnection() throws Exception {
        int port = start(TlsFiles.of(certificate, key, Optional.empty()));

        try (RawHttpConnection connection = new RawHttpConnection(first.connect(port))) {
            for (int i = 0; i < 3; i++) {
                assertThat(connection.request("GET", "/v2").receive().status()).isEqualTo(200);
            }
            byte[] large = new byte[4 << 20];
            large[4_000_000] = 7;
            RawHttpConnection.Response answer = connection
                    .post("/v2/models/plain/infer", "Inference-Header-Content-Length: 0\r\n", large)
                    .receive();
            int head = Integer.parseInt(answer.header("inference-header-content-length"));
            assertThat(answer.body()).hasSize(head + large.length);
            assertThat(answer.body()[head + 4_000_000]).isEqualTo((byte) 7);
        }
    }

    @Test
    void sendsNothingInPlainText() throws Exception {
        int port = start(TlsFiles.of(certificate, key, Optional.empty()));

        try (RawHttpConnection connection = new RawHttpConnection(port)) {
            assertThatThrownBy(() -> connection.request("GET", "/v2").receive()).isInstanceOf(Exception.class);
        }
    }

    @Test
    void requiresClientCertificatesIfConfigured() throws Exception {
        Path root = TestCertificate.put(directory.resolve("root.crt"), client.certificatePem());
        int port = start(TlsFiles.of(certificate, key, Optional.of(root)));

        try (RawHttpConnection known = new RawHttpConnection(first.connect(port, client))) {
            assertThat(known.request("GET", "/v2").receive().status()).isEqualTo(200);
        }
        assertThatThrownBy(() -> exchange(port)).isInstanceOf(IOException.class);
        assertThatThrownBy(() -> exchange(port, second)).isInstanceOf(IOException.class);
    }

    @Test
    void usesNewFilesForNewConnectionsAndKeepsTheOldConnections() throws Exception {
        int port = start(quick());
        try (RawHttpConnection old = new RawHttpConnection(first.connect(port))) {
            assertThat(old.request("GET", "/v2").receive().status()).isEqualTo(200);

            TestCertificate.put(certificate, second.certificatePem());
            TestCertificate.put(key, second.keyPem());

            awaitCertificate(port, second);
            assertThat(old.request("GET", "/v2").receive().status()).isEqualTo(200);
            try (RawHttpConnection next = new RawHttpConnection(second.connect(port))) {
                assertThat(next.request("GET", "/v2").receive().status()).isEqualTo(200);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"garbage", "", "gone", "mismatch"})
    void keepsTheOldFilesIfTheNewOnesAreBroken(String problem) throws Exception {
        int port = start(quick());

        switch (problem) {
            case "gone" -> Files.delete(certificate);
            case "mismatch" -> TestCertificate.put(certificate, second.certificatePem());
            default -> TestCertificate.put(certificate, problem);
        }

        // Whether it was noticed cannot be seen from outside; that later files are used shows that the watch goes on.
        for (int i = 0; i < 20; i++) {
            assertThat(exchange(port)).isEqualTo(200);
        }
        TestCertificate.put(certificate, second.certificatePem());
        TestCertificate.put(key, second.keyPem());
        awaitCertificate(port, second);
    }

    @Test
    void doesNotStartWithBrokenFiles() throws Exception {
        assertThatThrownBy(() -> start(TlsFiles.of(directory.resolve("none"), key, Optional.empty())))
                .isInstanceOf(TlsFilesException.class)
                .hasMessageStartingWith(
                        directory.resolve("none") + " (expected: a file that can be read): java.nio.file.NoSuchFile");
        assertThatThrownBy(() -> start(TlsFiles.of(certificate, directory.resolve("none"), Optional.empty())))
                .hasMessageStartingWith(directory.resolve("none").toString());
        assertThatThrownBy(() -> start(TlsFiles.of(certificate, certificate, Optional.empty())))
                .hasMessageStartingWith(certificate + " (expected: an RSA or EC private key in PEM)");
        assertThatThrownBy(() -> start(TlsFiles.of(key, key, Optional.empty())))
                .hasMessageStartingWith(key + " (expected: certificates in PEM)");
        Path encrypted = TestCertificate.put(
                directory.resolve("encrypted.key"), second.keyPem().replace("PRIVATE", "ENCRYPTED PRIVATE"));
        assertThatThrownBy(() -> start(TlsFiles.of(certificate, encrypted, Optional.empty())))
                .hasMessage(
                        encrypted + " (expected: a private key without a passphrase in PEM; this one is encrypted)");
        Path pipe = directory.resolve("pipe");
        new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor();
        assertThatThrownBy(() -> start(TlsFiles.of(certificate, pipe, Optional.empty())))
                .hasMessage(pipe + " (expected: a regular file)");
        Path other = TestCertificate.put(directory.resolve("other.key"), client.keyPem());
        assertThatThrownBy(() -> start(TlsFiles.of(certificate, other, Optional.empty())))
                .hasMessage(other + " (expected: the key of the certificate in " + certificate + ")");
        assertThatThrownBy(() -> start(TlsFiles.of(certificate, key, Optional.of(key))))
                .hasMessageStartingWith(key + " (expected: certificates in PEM)");
    }

    @Test
    void closesWithConnectionsOpen() throws Exception {
        int port = start(TlsFiles.of(certificate, key, Optional.empty()));
        try (SSLSocket idle = first.connect(port)) {
            idle.getOutputStream().write(bytes("GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n"));
            assertThat(idle.getInputStream().read()).isPositive();

            running.orElseThrow().close();
            running = Optional.empty();
        }
    }

    @Test
    void aConnectionWithoutAHandshakeIsEvicted() throws Exception {
        int port = start(TlsFiles.of(certificate, key, Optional.empty()), new ConnectionLimiter(2, 0));
        try (RawHttpConnection old = new RawHttpConnection(port);
                RawHttpConnection busy = new RawHttpConnection(first.connect(port))) {
            String headers = "Content-Length: 9\r\nInference-Header-Content-Length: 0\r\nExpect: 100-continue\r\n";
            busy.send(bytes("POST /v2/models/plain/infer HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n"));
            assertThat(busy.receiveHeader().status()).isEqualTo(100);

            try (RawHttpConnection late = new RawHttpConnection(first.connect(port))) {
                assertThat(late.request("GET", "/v2").receive().status()).isEqualTo(200);
            }
            assertThat(busy.send(new byte[9]).receive().status()).isEqualTo(200);
            assertThat(old.isClosedByServer()).isTrue();
        }
    }

    private TlsFiles quick() {
        return TlsFiles.of(certificate, key, Optional.empty()).withReloadInterval(Duration.ofMillis(20));
    }

    private int start(TlsFiles tls) throws IOException {
        return start(tls, ConnectionLimiter.unlimited());
    }

    private int start(TlsFiles tls, ConnectionLimiter limiter) throws IOException {
        RunningFrontend frontend = new RunningFrontend(RunningFrontend.options(http -> {
            http.eventLoops = 2;
            http.limiter = limiter;
            http.tls = Optional.of(tls);
        }));
        running = Optional.of(frontend);
        return frontend.http.port();
    }

    /** Asks over a new connection, and returns the status. */
    private static int exchange(int port, TestCertificate... own) throws IOException, GeneralSecurityException {
        try (RawHttpConnection connection = new RawHttpConnection(first.connect(port, own))) {
            return connection.request("GET", "/v2").receive().status();
        }
    }

    private static void awaitCertificate(int port, TestCertificate expected) throws GeneralSecurityException {
        long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (System.nanoTime() - end < 0) {
            try (SSLSocket socket = expected.connect(port)) {
                Certificate shown = socket.getSession().getPeerCertificates()[0];
                if (shown.equals(expected.certificate())) {
                    return;
                }
            } catch (IOException oldCertificate) {
                Thread.onSpinWait();
            }
        }
        throw new AssertionError("the new certificate was not used");
    }
}
