package dev.nereid.distribution;

import dev.nereid.api.InferenceServer;
import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * The port that answers {@code GET /metrics}, and other paths with nothing, as the reference server does. Safe for use
 * by any thread.
 */
final class MetricsEndpoint {
    private static final String CONTENT_TYPE = "content-type";
    private static final String TEXT = "text/plain; charset=utf-8";

    private final Vertx vertx;
    private final HttpServer port;

    private final InferenceServer server;

    /** Made at the first question, since the start of the server does not wait for it; made twice, it does no harm. */
    private volatile @Nullable ServerMetrics metrics;

    private MetricsEndpoint(Vertx vertx, InferenceServer server) {
        this.vertx = vertx;
        this.server = server;
        port = vertx.createHttpServer(new HttpServerOptions());
    }

    /**
     * Opens the port. Blocks.
     *
     * @param vertx the event loops
     * @param address where to listen
     * @param number the port; 0 for any that is free
     * @param server what the metrics tell of
     * @return the endpoint, to be closed by the caller
     * @throws IOException if the port cannot be had
     */
    static MetricsEndpoint start(Vertx vertx, String address, int number, InferenceServer server) throws IOException {
        MetricsEndpoint endpoint = new MetricsEndpoint(vertx, server);
        await(endpoint.port.requestHandler(endpoint::answer).listen(number, address));
        return endpoint;
    }

    /** Returns the port that it listens at. */
    int port() {
        return port.actualPort();
    }

    /** Closes the port. Blocks. */
    void close() {
        try {
            await(port.close());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void await(Future<?> future) throws IOException {
        try {
            future.toCompletionStage().toCompletableFuture().get();
        } catch (ExecutionException e) {
            throw new IOException(e.getCause() == null ? e : e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted");
        }
    }

    private void answer(HttpServerRequest request) {
        HttpServerResponse response = request.response();
        if (!request.method().equals(HttpMethod.GET)) {
            MetricsErrors.sendMethodNotAllowed(response);
            return;
        }
        response.putHeader(CONTENT_TYPE, TEXT);
        if ("/metrics".equals(request.path()) || "/metrics/".equals(request.path())) {
            vertx.executeBlocking(() -> text(), false)
                    .onSuccess(text -> response.end(Buffer.buffer(text)))
                    .onFailure(failure -> MetricsErrors.sendInternal(response));
        } else {
            response.end();
        }
    }

    private byte[] text() {
        ServerMetrics known = metrics;
        if (known == null) {
            known = new ServerMetrics(server);
            metrics = known;
        }
        return known.text();
    }
}
