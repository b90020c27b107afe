package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.tls.TlsCredentials;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.connection.ConnectionAcceptor;
import dev.nereid.http.connection.EventLoopServer;
import dev.nereid.http.tls.VertxTlsOptions;
import io.vertx.core.Future;
import io.vertx.core.VerticleBase;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.internal.ContextInternal;
import io.vertx.core.net.ServerSSLOptions;
import io.vertx.core.net.SocketAddress;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Serves HTTP requests on one event loop, as a Vert.x verticle. Confined to that event loop, except for methods that
 * allow any thread.
 */
final class HttpListener extends VerticleBase {
    private final InferenceServer server;
    private final HttpOptions options;
    private final SocketAddress address;
    private final Optional<TlsCredentials> credentials;
    private final ConnectionAcceptor acceptor;
    private final List<HttpListener> listeners;
    private @Nullable EventLoopServer eventLoopServer;

    /**
     * Creates the listener.
     *
     * @param server handles the requests
     * @param options the limits and security
     * @param address the address to listen on
     * @param credentials the TLS credentials; empty for plain text
     * @param acceptor accepts connections, for all event loops
     * @param listeners receives this listener once it listens
     */
    HttpListener(
            InferenceServer server,
            HttpOptions options,
            SocketAddress address,
            Optional<TlsCredentials> credentials,
            ConnectionAcceptor acceptor,
            List<HttpListener> listeners) {
        this.server = server;
        this.options = options;
        this.address = address;
        this.credentials = credentials;
        this.acceptor = acceptor;
        this.listeners = listeners;
    }

    @Override
    public Future<?> start() {
        Routes routes = new Routes(server, options, context, acceptor.jsonMemory());
        HttpServerOptions serverOptions = new HttpServerOptions();
        credentials.ifPresent(current -> VertxTlsOptions.apply(
                current, serverOptions, options.connections().timeouts().tlsHandshake()));
        EventLoopServer http = new EventLoopServer(
                (ContextInternal) context,
                serverOptions,
                options.connections(),
                acceptor,
                routes,
                (path, cause, status) -> RequestFailures.refuse(server, path, cause, status),
                System::nanoTime);
        if (options.forwardedHeaders().isPresent()) {
            http.keepTrailingSpace();
        }
        return http.listen(address).onSuccess(listening -> {
            eventLoopServer = http;
            listeners.add(this);
        });
    }

    /** Replaces the certificates, for new connections. May be called on any thread. */
    Future<Boolean> updateSslOptions(ServerSSLOptions sslOptions) {
        return eventLoopServer().updateSslOptions(sslOptions);
    }

    /** Returns the server of the event loop. May be called on any thread, after the start. */
    EventLoopServer eventLoopServer() {
        return requireNonNull(eventLoopServer, "http");
    }
}
