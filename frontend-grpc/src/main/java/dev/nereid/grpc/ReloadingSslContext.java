package dev.nereid.grpc;

import dev.nereid.api.tls.TlsCredentials;
import dev.nereid.api.tls.TlsFiles;
import dev.nereid.api.tls.TlsFilesException;
import dev.nereid.api.tls.TlsReloader;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.util.AdvancedTlsX509KeyManager;
import io.grpc.util.AdvancedTlsX509TrustManager;
import io.netty.handler.ssl.ClientAuth;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * Holds the server's TLS context and reloads its certificates. Safe for use by any thread.
 *
 * <p>A timer starts checks of the files, which run on another thread. Handshakes use new credentials; open connections
 * stay.
 */
final class ReloadingSslContext implements AutoCloseable {
    private final AdvancedTlsX509KeyManager keys = new AdvancedTlsX509KeyManager();
    private final Optional<AdvancedTlsX509TrustManager> trust;
    private final SslContext context;
    private final ScheduledFuture<?> schedule;

    private ReloadingSslContext(TlsCredentials credentials, ScheduledExecutorService timer)
            throws IOException, GeneralSecurityException {
        TlsFiles files = credentials.files();
        trust = files.clientRoots().isPresent()
                ? Optional.of(AdvancedTlsX509TrustManager.newBuilder()
                        .setVerification(AdvancedTlsX509TrustManager.Verification.CERTIFICATE_ONLY_VERIFICATION)
                        .build())
                : Optional.empty();
        apply(credentials);
        SslContextBuilder builder = SslContextBuilder.forServer(keys);
        trust.ifPresent(manager -> builder.trustManager(manager).clientAuth(ClientAuth.REQUIRE));
        context = GrpcSslContexts.configure(builder, SslProvider.JDK).build();
        TlsReloader reloader = new TlsReloader(
                "grpc", credentials, CompletableFuture.completedFuture(null).defaultExecutor(), this::apply);
        long interval = files.reloadInterval().toNanos();
        schedule = timer.scheduleWithFixedDelay(reloader::check, interval, interval, TimeUnit.NANOSECONDS);
    }

    /**
     * Reads the files and starts to reload them. Blocks.
     *
     * @param timer starts the checks; must outlive the context
     * @throws IOException {@link TlsFilesException} if a file cannot be used
     */
    static ReloadingSslContext of(TlsFiles files, ScheduledExecutorService timer) throws IOException {
        TlsCredentials credentials = TlsCredentials.read(files);
        try {
            return new ReloadingSslContext(credentials, timer);
        } catch (GeneralSecurityException e) {
            throw credentials.unusable(e);
        }
    }

    /** Returns the TLS context of the transport, the same at every call. */
    SslContext context() {
        return context;
    }

    private CompletionStage<?> apply(TlsCredentials credentials) throws IOException, GeneralSecurityException {
        keys.updateIdentityCredentials(credentials.chain().toArray(X509Certificate[]::new), credentials.key());
        if (trust.isPresent()) {
            trust.get().updateTrustCredentials(credentials.clientRoots().toArray(X509Certificate[]::new));
        }
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public void close() {
        schedule.cancel(false);
    }
}
