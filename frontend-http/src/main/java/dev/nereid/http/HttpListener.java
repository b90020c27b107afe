package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceServer;
import io.netty.channel.ChannelConfig;
import io.vertx.core.Future;
import io.vertx.core.Promise;
import io.vertx.core.VerticleBase;
import io.vertx.core.http.HttpConnection;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.net.ServerSSLOptions;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.net.impl.ConnectionBase;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What serves the connections of one event loop. Confined to it, but for {@link #close}.
 *
 * <p>It closes in phases: connections that are idle are closed, those with a request once it is answered; whoever
 * connects meanwhile is told that the server exits. When nobody is left, or time is up, the port is closed.
 */
final class HttpListener extends VerticleBase {
    private static final Logger log = LoggerFactory.getLogger(HttpListener.class);
    private static final int BACKLOG = 1024;
    /** Large bodies come in pieces of this size; every piece has its price. */
    private static final int PIECE_SIZE = 64 << 10;

    private final InferenceServer server;
    private final HttpOptions options;
    private final SocketAddress address;
    private final Optional<Certificates> certificates;
    private final List<HttpListener> listeners;
    private final Set<HttpConnection> connections = new HashSet<>();
    private @Nullable HttpServer http;
    private final Promise<Void> deserted = Promise.promise();
    private boolean closing;

    /**
     * Creates the listener.
     *
     * @param server who infers
     * @param options the limits
     * @param address where to listen
     * @param certificates by what to encrypt, if anything
     * @param listeners where to tell that it listens
     */
    HttpListener(
            InferenceServer server,
            HttpOptions options,
            SocketAddress address,
            Optional<Certificates> certificates,
            List<HttpListener> listeners) {
        this.server = server;
        this.options = options;
        this.address = address;
        this.certificates = certificates;
        this.listeners = listeners;
    }

    @Override
    public Future<?> start() {
        Routes routes = new Routes(
                options.security().access(),
                new Routes.Handlers(
                        new ServerHandler(server),
                        new ModelHandler(server.models()),
                        new StatisticsHandler(server.models()),
                        new InferHandler(server, options, context),
                        new GenerateHandler(server, options, context),
                        new RepositoryHandler(server, options, context),
                        new SharedMemoryHandler(server, options, context)));
        HttpServerOptions serving = new HttpServerOptions()
                .setAcceptBacklog(BACKLOG)
                .setMaxChunkSize(PIECE_SIZE)
                .setMaxInitialLineLength(RequestLimits.LONGEST_REQUEST_LINE)
                .setMaxHeaderSize(RequestLimits.LARGEST_HEADERS)
                .setHttp2ClearTextEnabled(false)
                // Nobody speaks web sockets here, and what waits for their beginning costs every request.
                .setPerFrameWebSocketCompressionSupported(false)
                .setPerMessageWebSocketCompressionSupported(false);
        certificates.ifPresent(held -> held.applyTo(serving));
        return vertx.createHttpServer(serving)
                .connectionHandler(this::connected)
                .requestHandler(request -> {
                    if (closing && !connections.contains(request.connection())) {
                        sendAway(request);
                    } else if (!routes.takeInference(request)) {
                        handle(request, routes);
                    }
                })
                .invalidRequestHandler(HttpListener::refuse)
                .listen(address)
                .onSuccess(listening -> {
                    http = listening;
                    listeners.add(this);
                });
    }

    /** Encrypts connections that are made from now on with other certificates. May be called on any thread. */
    Future<Boolean> renew(ServerSSLOptions encryption) {
        return requireNonNull(http, "http").updateSSLOptions(encryption);
    }

    /** Returns the port that is listened on. */
    int port() {
        return requireNonNull(http, "http").actualPort();
    }

    /**
     * Closes in phases, as the class says. May be called on any thread, once, after the start.
     *
     * @return completed when the port is closed
     */
    Future<Void> close() {
        Promise<Void> closed = Promise.promise();
        context.runOnContext(now -> {
            closing = true;
            // Not by what shutdown returns: that never completes if the client closes first.
            deserted.future()
                    .compose(gone -> requireNonNull(http, "http").close())
                    .onComplete(closed);
            List.copyOf(connections).forEach(connection -> connection.shutdown(options.closeTimeout()));
            checkDeserted();
        });
        return closed.future();
    }

    private void connected(HttpConnection connection) {
        ChannelConfig transport = ((ConnectionBase) connection).channel().config();
        transport.setAllocator(new RoomyAllocator(transport.getAllocator()));
        if (!closing) {
            connections.add(connection);
            connection.closeHandler(gone -> {
                connections.remove(connection);
                checkDeserted();
            });
        }
    }

    private void checkDeserted() {
        if (closing && connections.isEmpty()) {
            deserted.tryComplete();
        }
    }

    private static void sendAway(HttpServerRequest request) {
        request.response().putHeader(HttpHeaders.CONNECTION, HttpHeaders.CLOSE);
        HttpErrors.sendExiting(request.response());
        if (request.isEnded()) {
            request.connection().close();
        } else {
            UnwantedBody.discard(request);
            request.endHandler(end -> request.connection().close());
        }
    }

    private static void handle(HttpServerRequest request, Routes routes) {
        try {
            routes.handle(request);
        } catch (RuntimeException e) {
            log.atError().addKeyValue("path", request.path()).setCause(e).log("request not handled");
            HttpErrors.sendInternal(request.response());
            UnwantedBody.discard(request);
        }
    }

    /** Answers what is no request of HTTP, and closes the connection: nobody knows where the next request begins. */
    private static void refuse(HttpServerRequest request) {
        HttpErrors.sendInvalid(
                request.response(), request.decoderResult().cause(), request.getHeader(HttpHeaders.CONTENT_LENGTH));
        request.connection().close();
    }
}
