package dev.nereid.http;

import dev.nereid.api.InferenceServer;
import io.vertx.core.Future;
import io.vertx.core.VerticleBase;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.net.SocketAddress;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What serves the connections of one event loop. Confined to it. */
final class HttpListener extends VerticleBase {
    private static final Logger log = LoggerFactory.getLogger(HttpListener.class);
    private static final int BACKLOG = 1024;
    /** Large bodies come in pieces of this size; every piece has its price. */
    private static final int PIECE_SIZE = 64 << 10;

    private final InferenceServer server;
    private final HttpOptions options;
    private final SocketAddress address;
    private final List<HttpServer> listeners;

    /**
     * Creates the listener.
     *
     * @param server who infers
     * @param options the limits
     * @param address where to listen
     * @param listeners where to tell that it listens
     */
    HttpListener(InferenceServer server, HttpOptions options, SocketAddress address, List<HttpServer> listeners) {
        this.server = server;
        this.options = options;
        this.address = address;
        this.listeners = listeners;
    }

    @Override
    public Future<?> start() {
        Routes routes = new Routes(server, new InferHandler(server, options, context));
        Router router = Router.router(vertx);
        router.route().handler(routing -> routes.handle(routing.request()));
        router.errorHandler(400, routing -> HttpErrors.sendBadRequest(routing.response(), routing.failure()));
        router.errorHandler(500, HttpListener::report);
        return vertx.createHttpServer(new HttpServerOptions()
                        .setAcceptBacklog(BACKLOG)
                        .setMaxChunkSize(PIECE_SIZE)
                        .setHandle100ContinueAutomatically(true))
                .requestHandler(request -> {
                    if (!routes.takeInference(request)) {
                        router.handle(request);
                    }
                })
                .invalidRequestHandler(HttpListener::refuse)
                .listen(address)
                .onSuccess(listeners::add);
    }

    /** Answers what is no request of HTTP, and closes the connection: nobody knows where the next request begins. */
    private static void refuse(HttpServerRequest request) {
        String length = request.getHeader(HttpHeaders.CONTENT_LENGTH);
        if (length == null || isLength(length)) {
            HttpServerRequest.DEFAULT_INVALID_REQUEST_HANDLER.handle(request);
            return;
        }
        HttpErrors.send(
                request.response(),
                JsonFields.invalid("Unable to parse Content-Length, got: " + length),
                HttpErrors.TEXT);
        request.connection().close();
    }

    private static boolean isLength(String text) {
        try {
            return Long.parseLong(text) >= 0;
        } catch (NumberFormatException e) {
            return false;
        }
    }

    private static void report(RoutingContext routing) {
        log.atError()
                .addKeyValue("path", routing.request().path())
                .setCause(routing.failure())
                .log("request not handled");
        HttpErrors.sendInternal(routing.response());
    }
}
