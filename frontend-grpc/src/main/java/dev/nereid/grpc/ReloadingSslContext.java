package dev.nereid.grpc;

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
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds the server's TLS context and reloads its certificates. Safe for use by any thread.
 *
 * <p>A timer has the files read every now and then, not on the timer's own thread. If they have changed and are sound,
 * handshakes use the new ones; connections that are there stay. If they are not sound, the old ones stay in use.
 */
final class ReloadingSslContext implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ReloadingSslContext.class);

    private final GrpcOptions.Tls files;
    private final AdvancedTlsX509KeyManager keys = new AdvancedTlsX509KeyManager();
    private final Optional<AdvancedTlsX509TrustManager> trust;
    private final SslContext context;
    private final ScheduledFuture<?> schedule;

    /** The look at the files that was begun last. Of the timer. */
    private CompletableFuture<?> lastCheck = CompletableFuture.completedFuture(null);

    /** What was found last, used or not. Of the one look at a time. */
    private TlsFiles lastRead;

    private ReloadingSslContext(GrpcOptions.Tls files, ScheduledExecutorService timer)
            throws IOException, GeneralSecurityException {
        this.files = files;
        trust = files.clientRoots().isPresent()
                ? Optional.of(AdvancedTlsX509TrustManager.newBuilder()
                        .setVerification(AdvancedTlsX509TrustManager.Verification.CERTIFICATE_ONLY_VERIFICATION)
                        .build())
                : Optional.empty();
        lastRead = TlsFiles.read(files);
        apply(lastRead);
        SslContextBuilder builder = SslContextBuilder.forServer(keys);
        trust.ifPresent(manager -> builder.trustManager(manager).clientAuth(ClientAuth.REQUIRE));
        context = GrpcSslContexts.configure(builder, SslProvider.JDK).build();
        long interval = files.reloadInterval().toNanos();
        schedule = timer.scheduleWithFixedDelay(this::scheduleCheck, interval, interval, TimeUnit.NANOSECONDS);
    }

    /**
     * Reads the files and begins to watch them. Blocks.
     *
     * @param timer says when to look again; must outlive the endpoint
     * @throws IOException {@link TlsFilesException} if a file cannot be used
     */
    static ReloadingSslContext of(GrpcOptions.Tls files, ScheduledExecutorService timer) throws IOException {
        try {
            return new ReloadingSslContext(files, timer);
        } catch (GeneralSecurityException e) {
            throw new TlsFilesException(files.certificate(), "what this JVM can encrypt with", e);
        }
    }

    /** Returns what the transport needs, the same at every call. */
    SslContext context() {
        return context;
    }

    private void apply(TlsFiles found) throws IOException, GeneralSecurityException {
        TlsFiles.Identity identity = found.identity(files);
        Optional<List<X509Certificate>> roots = found.roots(files);
        keys.updateIdentityCredentials(identity.chain().toArray(X509Certificate[]::new), identity.key());
        if (trust.isPresent() && roots.isPresent()) {
            trust.get().updateTrustCredentials(roots.get().toArray(X509Certificate[]::new));
        }
    }

    private void scheduleCheck() {
        if (lastCheck.isDone()) {
            lastCheck = CompletableFuture.runAsync(this::check);
        }
    }

    private void check() {
        try {
            TlsFiles found = TlsFiles.read(files);
            if (found.equals(lastRead)) {
                return;
            }
            lastRead = found;
            apply(found);
            LOG.atInfo().addKeyValue("certificate", files.certificate()).log("certificates replaced");
        } catch (IOException | GeneralSecurityException | RuntimeException e) {
            LOG.atWarn()
                    .addKeyValue("certificate", files.certificate())
                    .addKeyValue("reason", e.getMessage())
                    .log("certificates not replaced, the old ones stay in use");
        }
    }

    /** Watches the files no longer. */
    @Override
    public void close() {
        schedule.cancel(false);
    }
}
