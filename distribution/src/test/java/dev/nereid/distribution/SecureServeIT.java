package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.nereid.distribution.testing.InstalledServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ServerLiveRequest;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The installed server with encryption and secrets. Needs curl and openssl. */
@Tag("slow")
final class SecureServeIT {
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    @TempDir
    private Path directory;

    private Path certificate;
    private Path key;

    @BeforeEach
    void makeACertificate() throws IOException, InterruptedException {
        assumeThat(isInstalled("curl") && isInstalled("openssl"))
                .as("curl and openssl are installed")
                .isTrue();
        certificate = directory.resolve("server.crt");
        key = directory.resolve("server.key");
        run(
                        "openssl",
                        "req",
                        "-x509",
                        "-newkey",
                        "rsa:2048",
                        "-nodes",
                        "-days",
                        "2",
                        "-subj",
                        "/CN=localhost",
                        "-addext")
                .with("subjectAltName=IP:127.0.0.1", "-keyout", key.toString(), "-out", certificate.toString())
                .succeeds();
    }

    @Test
    void servesHttpsClientsWithTheSecret() throws IOException, InterruptedException {
        try (InstalledServer server = InstalledServer.serve(
                InstalledServer.MODELS,
                "--http-use-ssl=true",
                "--http-server-cert=" + certificate,
                "--http-server-key=" + key,
                "--http-restricted-api=metadata,model-repository:admin-key=secret")) {
            String address = server.address("HTTP");
            assertThat(address).startsWith("https://127.0.0.1:");

            assertThat(status(address + "/v2/health/ready")).isEqualTo("200");
            assertThat(status(address + "/v2")).isEqualTo("403");
            assertThat(status(address + "/v2", "-H", "admin-key: wrong")).isEqualTo("403");
            assertThat(status(address + "/v2", "-H", "admin-key: secret")).isEqualTo("200");
            assertThat(status(address + "/v2/repository/index", "-X", "POST", "-H", "admin-key: secret"))
                    .isEqualTo("200");
        }
    }

    @Test
    void servesGrpcClientsWithACertificate() throws IOException {
        try (InstalledServer server = InstalledServer.serve(
                InstalledServer.MODELS,
                "--grpc-use-ssl-mutual=true",
                "--grpc-server-cert=" + certificate,
                "--grpc-server-key=" + key,
                "--grpc-root-cert=" + certificate)) {
            String target = server.address("gRPC");

            assertThat(overGrpc(
                            target,
                            TlsChannelCredentials.newBuilder()
                                    .trustManager(certificate.toFile())
                                    .keyManager(certificate.toFile(), key.toFile())
                                    .build()))
                    .isEqualTo(Status.Code.OK);
            assertThat(overGrpc(
                            target,
                            TlsChannelCredentials.newBuilder()
                                    .trustManager(certificate.toFile())
                                    .build()))
                    .isEqualTo(Status.Code.UNAVAILABLE);
            assertThat(overGrpc(target, InsecureChannelCredentials.create())).isEqualTo(Status.Code.UNAVAILABLE);
        }
    }

    /** Requests the liveness of the server. Returns the outcome. */
    private static Status.Code overGrpc(String target, ChannelCredentials credentials) {
        ManagedChannel channel = Grpc.newChannelBuilder(target, credentials).build();
        try {
            return GRPCInferenceServiceGrpc.newBlockingStub(channel)
                            .withDeadlineAfter(TIMEOUT)
                            .serverLive(ServerLiveRequest.getDefaultInstance())
                            .getLive()
                    ? Status.Code.OK
                    : Status.Code.UNKNOWN;
        } catch (StatusRuntimeException e) {
            return e.getStatus().getCode();
        } finally {
            channel.shutdownNow();
        }
    }

    @Test
    void reportsInOneLineWhatIsWrongWithTheKeyOfGrpc() throws IOException, InterruptedException {
        assertThat(complaint("grpc", certificate, certificate))
                .contains(certificate + " (expected: an RSA or EC private key in PEM): ");
    }

    @Test
    void reportsInOneLineWhatIsWrongWithTheFiles() throws IOException, InterruptedException {
        assertThat(complaint("http", key, key)).startsWith("nereid serve: --http-server-cert: " + key + " (expected: ");
    }

    /** Starts a server with invalid files, and returns the line with the error. */
    private static String complaint(String protocol, Path certificate, Path key)
            throws IOException, InterruptedException {
        InstalledServer.Result result = InstalledServer.run(
                "serve",
                "--model-repository=" + InstalledServer.MODELS,
                "--http-port=0",
                "--grpc-port=0",
                "--metrics-port=0",
                "--" + protocol + "-use-ssl=true",
                "--" + protocol + "-server-cert=" + certificate,
                "--" + protocol + "-server-key=" + key);
        assertThat(result.status()).isNotZero();
        List<String> lines = result.err()
                .lines()
                .filter(line -> line.startsWith("nereid serve: "))
                .toList();
        assertThat(lines).hasSize(1);
        return lines.getFirst();
    }

    private String status(String url, String... options) throws IOException, InterruptedException {
        return run("curl", "-s", "-o", directory.resolve("response").toString(), "-w", "%{http_code}", "--cacert")
                .with(certificate.toString(), url)
                .with(options)
                .succeeds();
    }

    private static boolean isInstalled(String program) throws InterruptedException {
        try {
            return new ProcessBuilder(program, program.equals("openssl") ? "version" : "--version")
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException e) {
            return false;
        }
    }

    private static Program run(String... command) {
        return new Program(List.of(command));
    }

    /** A program with its arguments. Immutable. */
    private record Program(List<String> command) {
        Program with(String... more) {
            List<String> all = new ArrayList<>(command);
            all.addAll(List.of(more));
            return new Program(all);
        }

        String succeeds() throws IOException, InterruptedException {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertThat(process.waitFor()).as(out).isZero();
            return out;
        }
    }
}
