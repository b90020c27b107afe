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
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;
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

    private final CpuMetrics processors = new CpuMetrics(Path.of("/proc"));
    private final boolean withProcessors;
    private final boolean withLatencies;

    /** The timer that has the processors looked at; set before the endpoint is handed out. */
    private OptionalLong watch = OptionalLong.empty();

    /** Made at the first question, since the start of the server does not wait for it; made twice, it does no harm. */
    private volatile @Nullable ServerMetrics metrics;

    private MetricsEndpoint(Vertx vertx, MetricsFlags flags, InferenceServer server) {
        this.vertx = vertx;
        this.server = server;
        withProcessors = flags.allowCpu;
        withLatencies = flags.countLatencies;
        port = vertx.createHttpServer(new HttpServerOptions());
    }

    /**
     * Opens the port. Blocks.
     *
     * @param vertx the event loops
     * @param address where to listen
     * @param flags the port, and what the metrics tell of
     * @param server the server that the metrics tell of
     * @return the endpoint, to be closed by the caller
     * @throws IOException if the port cannot be had
     */
    static MetricsEndpoint start(Vertx vertx, String address, MetricsFlags flags, InferenceServer server)
            throws IOException {
        MetricsEndpoint endpoint = new MetricsEndpoint(vertx, flags, server);
        await(endpoint.port.requestHandler(endpoint::answer).listen(flags.port, address));
        if (flags.allowCpu) {
            endpoint.watchProcessors(flags.interval);
        }
        return endpoint;
    }

    /** Looks twice in an interval, as the reference server does. */
    private void watchProcessors(Duration interval) {
        processors.poll();
        watch = OptionalLong.of(
                vertx.setPeriodic(Math.max(1, interval.toMillis() / 2), _ -> vertx.executeBlocking(this::poll, false)));
    }

    private boolean poll() {
        processors.poll();
        return true;
    }

    /** Returns the port that it listens at. */
    int port() {
        return port.actualPort();
    }

    /** Closes the port. Blocks. */
    void close() {
        watch.ifPresent(vertx::cancelTimer);
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
            known = new ServerMetrics(
                    server, withProcessors ? Optional.of(processors) : Optional.empty(), withLatencies);
            metrics = known;
        }
        return known.text();
    }
}
