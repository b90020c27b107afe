package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceServer;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.connection.ConnectionAcceptor;
import dev.nereid.http.connection.EventLoopServer;
import dev.nereid.http.tls.Certificates;
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
 * Serves HTTP requests on one event loop, as a Vert.x verticle. Confined to it, but for the methods that say
 * otherwise.
 */
final class HttpListener extends VerticleBase {
    private final InferenceServer server;
    private final HttpOptions options;
    private final SocketAddress address;
    private final Optional<Certificates> certificates;
    private final ConnectionAcceptor acceptor;
    private final List<HttpListener> listeners;
    private @Nullable EventLoopServer eventLoopServer;

    /**
     * Creates the listener.
     *
     * @param server who infers
     * @param options the limits
     * @param address where to listen
     * @param certificates by what to encrypt, if anything
     * @param acceptor what accepts connections
     * @param listeners where to tell that it listens
     */
    HttpListener(
            InferenceServer server,
            HttpOptions options,
            SocketAddress address,
            Optional<Certificates> certificates,
            ConnectionAcceptor acceptor,
            List<HttpListener> listeners) {
        this.server = server;
        this.options = options;
        this.address = address;
        this.certificates = certificates;
        this.acceptor = acceptor;
        this.listeners = listeners;
    }

    @Override
    public Future<?> start() {
        Routes routes = new Routes(server, options, context, acceptor.jsonMemory());
        HttpServerOptions serving = new HttpServerOptions();
        certificates.ifPresent(
                held -> held.applyTo(serving, options.connections().timeouts().tlsHandshake()));
        EventLoopServer port = new EventLoopServer(
                (ContextInternal) context,
                serving,
                options.connections(),
                acceptor,
                routes,
                (path, cause, status) -> RequestFailures.refuse(server, path, cause, status),
                System::nanoTime);
        if (options.forwardedHeaders().isPresent()) {
            port.keepBlanks();
        }
        return port.listen(address).onSuccess(listening -> {
            eventLoopServer = port;
            listeners.add(this);
        });
    }

    /** Encrypts connections that are made from now on with other certificates. May be called on any thread. */
    Future<Boolean> updateSslOptions(ServerSSLOptions encryption) {
        return eventLoopServer().updateSslOptions(encryption);
    }

    /** Returns the connections and the port. May be called on any thread, after the start. */
    EventLoopServer eventLoopServer() {
        return requireNonNull(eventLoopServer, "http");
    }
}
