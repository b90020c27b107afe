package dev.nereid.http.tls;

import dev.nereid.api.tls.TlsCredentials;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.ClientAuth;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.net.OpenSSLEngineOptions;
import io.vertx.core.net.PemKeyCertOptions;
import io.vertx.core.net.PemTrustOptions;
import io.vertx.core.net.ServerSSLOptions;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** Makes TLS options of Vert.x from credentials. Static functions only. */
public final class VertxTlsOptions {
    private VertxTlsOptions() {}

    /** Configures a server to encrypt from its start, by native code where it is available. */
    public static void apply(TlsCredentials credentials, HttpServerOptions options, Duration handshakeTimeout) {
        if (OpenSSLEngineOptions.isAvailable()) {
            options.setSslEngineOptions(new OpenSSLEngineOptions());
        }
        options.setSsl(true).setUseAlpn(false).setKeyCertOptions(pair(credentials));
        options.setSslHandshakeTimeout(handshakeTimeout.toMillis()).setSslHandshakeTimeoutUnit(TimeUnit.MILLISECONDS);
        trust(credentials).ifPresent(trust -> options.setTrustOptions(trust).setClientAuth(ClientAuth.REQUIRED));
    }

    public static ServerSSLOptions of(TlsCredentials credentials) {
        ServerSSLOptions options = new ServerSSLOptions().setKeyCertOptions(pair(credentials));
        trust(credentials).ifPresent(trust -> options.setTrustOptions(trust).setClientAuth(ClientAuth.REQUIRED));
        return options;
    }

    private static PemKeyCertOptions pair(TlsCredentials credentials) {
        return new PemKeyCertOptions()
                .addCertValue(Buffer.buffer(credentials.chainPem()))
                .addKeyValue(Buffer.buffer(credentials.keyPem()));
    }

    private static Optional<PemTrustOptions> trust(TlsCredentials credentials) {
        return credentials.clientRootsPem().map(roots -> new PemTrustOptions().addCertValue(Buffer.buffer(roots)));
    }
}
