package dev.nereid.distribution.metrics;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.frontend.ApiGroup;
import dev.nereid.distribution.flags.MetricsFlags;
import dev.nereid.http.BoundedHttpServer;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.connection.HttpConnectionOptions;
import dev.nereid.http.control.ServerHandler;
import io.vertx.core.Context;
import io.vertx.core.Future;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.core.internal.ContextInternal;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Serves {@code GET /metrics} and the health of the server, and an empty response for other paths. Safe for use by any
 * thread.
 *
 * <p>Its event loop serves nothing else: a plugin that blocks an event loop of HTTP does not stop scrapes or probes.
 */
public final class MetricsEndpoint {
    private static final String CONTENT_TYPE = "content-type";
    private static final String LIVE = "/v2/health/live";
    private static final String READY = "/v2/health/ready";
    private static final String TEXT = "text/plain; charset=utf-8";

    private final Context context;
    private final InferenceServer server;
    private final ServerHandler health;
    private final ApiAccess access;
    private final List<ConnectionCounts> others;

    private final CpuMetrics processors = new CpuMetrics(Path.of("/proc"));
    private final GpuMetrics gpus = GpuMetrics.ofThisMachine();
    private final boolean withProcessors;
    private final boolean withGpus;
    private final boolean withLatencies;

    /** The timer of measurements of the machine; set before the endpoint is published. */
    private OptionalLong watch = OptionalLong.empty();

    /** Metrics, created by the first request so that the start need not wait; creation by two threads is harmless. */
    private volatile @Nullable ServerMetrics metrics;

    /** The readiness that a thread is asking for; {@code null} if none is. Confined to the event loop. */
    private @Nullable Future<@Nullable Boolean> readiness;

    /** The port; set before the endpoint is published. */
    private volatile @Nullable BoundedHttpServer http;

    private MetricsEndpoint(
            Context context,
            MetricsFlags flags,
            InferenceServer server,
            ApiAccess access,
            List<ConnectionCounts> others) {
        this.context = context;
        this.server = server;
        this.health = new ServerHandler(server);
        this.access = access;
        this.others = others;
        withProcessors = flags.allowCpu;
        withGpus = flags.allowGpu;
        withLatencies = flags.countLatencies;
    }

    /**
     * Opens the port on its event loop. Blocks. The caller closes the endpoint.
     *
     * @param access the restrictions of HTTP, which health has here too
     * @param others the connections of other ports
     * @throws IOException if the port cannot be opened
     */
    public static MetricsEndpoint start(
            Context context,
            String address,
            MetricsFlags flags,
            InferenceServer server,
            ApiAccess access,
            HttpConnectionOptions bounds,
            List<ConnectionCounts> others)
            throws IOException {
        MetricsEndpoint endpoint = new MetricsEndpoint(context, flags, server, access, others);
        endpoint.http = BoundedHttpServer.start(context, address, flags.port, bounds, endpoint::handle);
        if (flags.allowCpu || flags.allowGpu) {
            endpoint.watch(flags.interval);
        }
        return endpoint;
    }

    /** Measures twice in an interval, as the reference server does. */
    private void watch(Duration interval) {
        context.executeBlocking(this::poll, false); // The start does not wait for the library of the GPUs.
        watch = OptionalLong.of(((ContextInternal) context)
                .setPeriodic(Math.max(1, interval.toMillis() / 2), _ -> context.executeBlocking(this::poll, false)));
    }

    private boolean poll() {
        if (withProcessors) {
            processors.poll();
        }
        if (withGpus) {
            gpus.poll();
        }
        return true;
    }

    public int port() {
        return http().port();
    }

    public void close() {
        watch.ifPresent(context.owner()::cancelTimer);
        http().close();
    }

    private BoundedHttpServer http() {
        return requireNonNull(http, "http");
    }

    /** Returns a count of the port. It is 0 while the port opens, when the first request may arrive already. */
    private long ofPort(ToLongFunction<BoundedHttpServer> count) {
        BoundedHttpServer opened = http;
        return opened == null ? 0 : count.applyAsLong(opened);
    }

    private void handle(HttpServerRequest request) {
        HttpServerResponse response = request.response();
        if (!request.method().equals(HttpMethod.GET)) {
            MetricsErrors.sendMethodNotAllowed(response);
            return;
        }
        if (isHealth(request.path())) {
            sendHealth(request);
            return;
        }
        response.putHeader(CONTENT_TYPE, TEXT);
        if ("/metrics".equals(request.path()) || "/metrics/".equals(request.path())) {
            context.executeBlocking(() -> text(), false)
                    .onSuccess(text -> response.end(Buffer.buffer(text)))
                    .onFailure(failure -> MetricsErrors.sendInternal(response));
        } else {
            response.end();
        }
    }

    private static boolean isHealth(@Nullable String path) {
        return LIVE.equals(path) || READY.equals(path);
    }

    /** Sends what the HTTP port sends for the same path. */
    private void sendHealth(HttpServerRequest request) {
        Optional<String> missing = access.missingHeader(ApiGroup.HEALTH, request::getHeader);
        if (missing.isPresent()) {
            HttpErrors.sendRestricted(request.response(), missing.get());
        } else if (LIVE.equals(request.path())) {
            health.live(request);
        } else {
            sendReady(request);
        }
    }

    /** Asks for the readiness on another thread, since that may call plugins. Requests that come meanwhile share the result. */
    private void sendReady(HttpServerRequest request) {
        Future<@Nullable Boolean> asked = readiness;
        if (asked == null) {
            asked = context.executeBlocking(server::isReady, false);
            readiness = asked;
            asked.onComplete(_ -> readiness = null);
        }
        asked.onComplete(result -> health.ready(request, Boolean.TRUE.equals(result.result())));
    }

    private byte[] text() {
        ServerMetrics created = metrics;
        if (created == null) {
            List<ConnectionCounts> connections = new ArrayList<>(others);
            connections.add(new ConnectionCounts(
                    "metrics",
                    () -> ofPort(BoundedHttpServer::openConnections),
                    () -> ofPort(BoundedHttpServer::refusedConnections)));
            created = new ServerMetrics(
                    server,
                    withProcessors ? Optional.of(processors) : Optional.empty(),
                    withGpus ? Optional.of(gpus) : Optional.empty(),
                    withLatencies,
                    List.copyOf(connections));
            metrics = created;
        }
        return created.text();
    }
}
