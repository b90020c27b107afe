package dev.nereid.benchmarks.process;

import dev.nereid.benchmarks.load.Loopback;
import io.vertx.core.DeploymentOptions;
import io.vertx.core.Future;
import io.vertx.core.VerticleBase;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.util.concurrent.atomic.AtomicInteger;

/** HTTP ceiling: echoes the body of each request. Confined to its event loop. */
public final class HttpEcho extends VerticleBase {
    /** Responds when the whole body has arrived. */
    public static final String WHOLE = "/whole";

    /** Responds chunk by chunk. */
    public static final String CHUNKS = "/chunks";

    /** Any port that is free, the same for all event loops. */
    private static final int FREE_PORT = -1;

    private final AtomicInteger port;

    private HttpEcho(AtomicInteger port) {
        this.port = port;
    }

    /** Serves on every event loop, {@code loops} of them. Blocks. */
    static int start(Vertx vertx, int loops) {
        AtomicInteger port = new AtomicInteger();
        vertx.deployVerticle(() -> new HttpEcho(port), new DeploymentOptions().setInstances(loops))
                .await();
        return port.get();
    }

    @Override
    public Future<HttpServer> start() {
        return vertx.createHttpServer()
                .requestHandler(HttpEcho::echo)
                .listen(FREE_PORT, Loopback.ADDRESS)
                .onSuccess(server -> port.set(server.actualPort()));
    }

    private static void echo(HttpServerRequest request) {
        HttpServerResponse response = request.response();
        if (CHUNKS.equals(request.path())) {
            response.putHeader(HttpHeaders.CONTENT_LENGTH, request.getHeader(HttpHeaders.CONTENT_LENGTH));
            request.handler(response::write);
            request.endHandler(end -> response.end());
        } else {
            request.body().onSuccess(response::end);
        }
    }
}
