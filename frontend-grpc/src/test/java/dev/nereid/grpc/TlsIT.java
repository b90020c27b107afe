package dev.nereid.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.tls.TlsFiles;
import dev.nereid.api.tls.TlsFilesException;
import dev.nereid.grpc.testing.TestFrontend;
import inference.GRPCInferenceServiceGrpc;
import inference.ServerLiveRequest;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NettyChannelBuilder;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests TLS with certificates made here. */
@Tag("slow")
final class TlsIT {
    @TempDir
    private static Path made;

    private static TestIdentity template;
    private static TestIdentity stranger;
    private static TestIdentity client;
    private static TestIdentity later;

    @TempDir
    private Path directory;

    private final List<ManagedChannel> channels = new ArrayList<>();
    private TestIdentity server;

    @BeforeAll
    static void makeCertificates() throws Exception {
        template = TestIdentity.make(made, "server", "EC");
        stranger = TestIdentity.make(made, "stranger", "EC");
        client = TestIdentity.make(made, "client", "EC");
        later = TestIdentity.make(made, "later", "RSA");
    }

    @BeforeEach
    void copyCertificate() throws IOException {
        server = new TestIdentity(directory.resolve("server.crt"), directory.resolve("server.key"));
        template.replace(server);
    }

    @AfterEach
    void closeChannels() {
        channels.forEach(ManagedChannel::shutdownNow);
    }

    private static TestFrontend serve(TestIdentity identity, Optional<Path> roots) {
        TlsFiles tls = new TlsFiles(identity.certificate(), identity.key(), roots, Duration.ofMillis(20));
        return new TestFrontend(grpc -> grpc.tls = Optional.of(tls));
    }

    private ManagedChannel connect(TestFrontend frontend, Path trusted, @Nullable TestIdentity own) throws Exception {
        SslContextBuilder context = SslContextBuilder.forClient().trustManager(trusted.toFile());
        if (own != null) {
            context.keyManager(own.certificate().toFile(), own.key().toFile());
        }
        ManagedChannel channel = NettyChannelBuilder.forAddress("127.0.0.1", frontend.frontend.port())
                .sslContext(GrpcSslContexts.configure(context, SslProvider.JDK).build())
                .channelType(NioSocketChannel.class)
                .eventLoopGroup(frontend.eventLoops)
                .build();
        channels.add(channel);
        return channel;
    }

    private static boolean infers(ManagedChannel channel) {
        try {
            return GRPCInferenceServiceGrpc.newBlockingStub(channel)
                    .withDeadlineAfter(20, TimeUnit.SECONDS)
                    .serverLive(ServerLiveRequest.getDefaultInstance())
                    .getLive();
        } catch (StatusRuntimeException _) {
            return false;
        }
    }

    @Test
    void encrypts() throws Exception {
        try (TestFrontend frontend = serve(server, Optional.empty())) {
            assertThat(infers(connect(frontend, server.certificate(), null))).isTrue();
            assertThat(infers(connect(frontend, stranger.certificate(), null))).isFalse();
            assertThat(infers(frontend.channel)).as("plain text").isFalse();
        }
    }

    @Test
    void requiresClientCertificates() throws Exception {
        try (TestFrontend frontend = serve(server, Optional.of(client.certificate()))) {
            assertThat(infers(connect(frontend, server.certificate(), client))).isTrue();
            assertThat(infers(connect(frontend, server.certificate(), null))).isFalse();
            assertThat(infers(connect(frontend, server.certificate(), stranger)))
                    .isFalse();
        }
    }

    @Test
    void usesNewFilesForNewConnections() throws Exception {
        Path roots = Files.copy(client.certificate(), directory.resolve("roots"));
        try (TestFrontend frontend = serve(server, Optional.of(roots))) {
            Path old = Files.copy(server.certificate(), directory.resolve("old"));
            ManagedChannel early = connect(frontend, old, client);
            assertThat(infers(early)).isTrue();

            later.replace(server);
            Files.writeString(roots, Files.readString(stranger.certificate()));

            TestFrontend.await(() -> {
                try {
                    return infers(connect(frontend, later.certificate(), stranger));
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            assertThat(infers(early)).as("the connection that was there").isTrue();
            assertThat(infers(connect(frontend, later.certificate(), client))).isFalse();
            assertThat(infers(connect(frontend, old, stranger))).isFalse();
        }
    }

    @Test
    void keepsTheOldFilesWhileTheNewOnesAreBroken() throws Exception {
        Path old = Files.copy(server.certificate(), directory.resolve("old"));
        try (TestFrontend frontend = serve(server, Optional.empty())) {
            Files.writeString(server.key(), "no key");
            assertThat(infers(connect(frontend, old, null))).isTrue();
            Files.delete(server.certificate());
            assertThat(infers(connect(frontend, old, null))).isTrue();
            Files.copy(later.certificate(), server.certificate()); // without its key
            assertThat(infers(connect(frontend, old, null))).isTrue();

            later.replace(server);

            TestFrontend.await(() -> {
                try {
                    return infers(connect(frontend, later.certificate(), null));
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
        }
    }

    @Test
    void doesNotStartWithFilesThatCannotBeUsed() throws Exception {
        Path garbage = Files.writeString(directory.resolve("garbage"), "garbage");
        Path missing = directory.resolve("missing");

        assertRefused(new TestIdentity(missing, server.key()), missing + " (expected: a file that can be read)");
        assertRefused(new TestIdentity(garbage, server.key()), garbage + " (expected: certificates in PEM)");
        assertRefused(
                new TestIdentity(server.certificate(), garbage),
                garbage + " (expected: an RSA or EC private key in PEM)");
        Path encrypted = Files.writeString(
                directory.resolve("encrypted"), Files.readString(server.key()).replace("PRIVATE", "ENCRYPTED PRIVATE"));
        assertRefused(
                new TestIdentity(server.certificate(), encrypted),
                encrypted + " (expected: a private key without a passphrase in PEM; this one is encrypted)");
        Path pipe = directory.resolve("pipe");
        new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor();
        assertRefused(new TestIdentity(server.certificate(), pipe), pipe + " (expected: a regular file)");
        assertRefused(
                new TestIdentity(server.certificate(), stranger.key()),
                stranger.key() + " (expected: the key of the certificate in " + server.certificate() + ")");
    }

    private static void assertRefused(TestIdentity identity, String text) {
        assertThatThrownBy(() -> serve(identity, Optional.empty()))
                .isInstanceOf(UncheckedIOException.class)
                .cause()
                .isInstanceOf(TlsFilesException.class)
                .hasMessageStartingWith(text);
    }
}
