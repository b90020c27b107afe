package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceServer;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.connection.ConnectionAcceptor;
import dev.nereid.http.connection.EventLoopServer;
import dev.nereid.http.control.ModelHandler;
import dev.nereid.http.control.RepositoryHandler;
import dev.nereid.http.control.ServerHandler;
import dev.nereid.http.control.SharedMemoryHandler;
import dev.nereid.http.control.StatisticsHandler;
import dev.nereid.http.generate.GenerateHandler;
import dev.nereid.http.infer.InferHandler;
import dev.nereid.http.tls.Certificates;
import io.vertx.core.Future;
import io.vertx.core.VerticleBase;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.internal.ContextInternal;
import io.vertx.core.net.ServerSSLOptions;
import io.vertx.core.net.SocketAddress;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves HTTP requests on one event loop, as a Vert.x verticle. Confined to it, but for the methods that say
 * otherwise.
 */
final class HttpListener extends VerticleBase {
    private static final Logger log = LoggerFactory.getLogger(HttpListener.class);

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
        BodyLimits limits = options.bodyLimits();
        Routes routes = new Routes(
                options,
                new Routes.Handlers(
                        new ServerHandler(server),
                        new ModelHandler(server.models()),
                        new StatisticsHandler(server.models()),
                        new InferHandler(server, limits, options.forwardedHeaders(), context, acceptor.jsonMemory()),
                        new GenerateHandler(server, limits, context, acceptor.jsonMemory()),
                        new RepositoryHandler(server, limits, context),
                        new SharedMemoryHandler(server, limits, context)));
        HttpServerOptions serving = new HttpServerOptions();
        certificates.ifPresent(
                held -> held.applyTo(serving, options.connections().timeouts().tlsHandshake()));
        EventLoopServer port = new EventLoopServer(
                (ContextInternal) context,
                serving,
                options.connections(),
                acceptor,
                request -> {
                    if (!routes.handleInfer(request)) {
                        handle(request, routes);
                    }
                },
                (path, cause, status) -> RequestFailures.refuse(server, path, cause, status),
                System::nanoTime);
        if (options.forwardedHeaders().isPresent()) {
            port.keepTrailingSpace();
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

    private void handle(HttpServerRequest request, Routes routes) {
        try {
            routes.handle(request);
        } catch (RuntimeException | Error e) {
            log.atError().addKeyValue("path", request.path()).setCause(e).log("request not handled");
            HttpErrors.sendInternal(request);
            DiscardedBody.discard(request, options.bodyLimits());
        }
    }
}
