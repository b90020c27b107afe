package dev.nereid.distribution;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.api.tls.TlsFilesException;
import dev.nereid.distribution.flags.EndpointFlags;
import dev.nereid.distribution.flags.HttpFlags;
import dev.nereid.distribution.metrics.ConnectionCounts;
import dev.nereid.distribution.metrics.MetricsEndpoint;
import dev.nereid.distribution.process.Endpoint;
import dev.nereid.distribution.process.Endpoints;
import dev.nereid.distribution.process.EventLoops;
import dev.nereid.distribution.process.FileDescriptors;
import dev.nereid.distribution.process.StartException;
import dev.nereid.grpc.GrpcFrontend;
import dev.nereid.grpc.GrpcOptions;
import dev.nereid.http.HttpFrontend;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/** The open ports of a server, all on the same event loops. Used by one thread after the other. */
final class Ports {
    /** The message of the operating system; exception types differ between native and other transports. */
    private static final String IN_USE = "Address already in use";

    private final EventLoops loops;
    private final EndpointFlags flags;
    private final InferenceServer server;

    /** Close actions of the ports that receive requests. */
    private final Deque<Runnable> open = new ArrayDeque<>();

    /** Close action of the metrics port. */
    private Runnable closeMetrics = () -> {};

    /** Limits the connections of HTTP and gRPC together. */
    private final ConnectionLimiter limiter;

    private final ConnectionLimiter metricsLimiter;

    private final List<ConnectionCounts> counts = new ArrayList<>();

    private Optional<Endpoint> http = Optional.empty();
    private Optional<Endpoint> grpc = Optional.empty();
    private Optional<Endpoint> metrics = Optional.empty();

    private Ports(EventLoops loops, EndpointFlags flags, InferenceServer server) {
        this.loops = loops;
        this.flags = flags;
        this.server = server;
        long descriptors = FileDescriptors.limit();
        limiter = flags.connections.limiter(descriptors);
        metricsLimiter = flags.connections.metricsLimiter(descriptors);
    }

    /**
     * Opens the ports that the flags allow.
     *
     * @param flags the flags of the ports
     * @param loops the event loops, owned by the caller
     * @param server the server that receives the requests
     * @param closeTimeout the time that requests in progress have to complete after {@link #close}
     * @return the ports
     * @throws StartException if a port cannot be opened; none stays open
     */
    static Ports open(EndpointFlags flags, EventLoops loops, InferenceServer server, Duration closeTimeout)
            throws StartException {
        Ports ports = new Ports(loops, flags, server);
        try {
            if (flags.http.allow) {
                ports.openHttp(closeTimeout);
            }
            if (flags.grpc.allow) {
                ports.openGrpc(closeTimeout);
            }
            if (flags.metrics.allow) {
                ports.openMetrics();
            }
            return ports;
        } catch (StartException | RuntimeException e) {
            ports.close();
            throw e;
        }
    }

    Endpoints endpoints() {
        return new Endpoints(http, grpc, metrics);
    }

    /**
     * Stops receiving requests, and closes the ports when requests in progress have completed. All protocols stop
     * receiving at the same time, so that none accepts requests while another waits for its own. Later calls do
     * nothing.
     *
     * @return completed when the ports are closed, or exceptionally if they could not be
     */
    CompletableFuture<Void> closeRequestPorts() {
        List<CompletableFuture<Void>> closing = new ArrayList<>();
        while (!open.isEmpty()) {
            closing.add(CompletableFuture.runAsync(open.pop(), Thread::startVirtualThread));
        }
        return CompletableFuture.allOf(closing.toArray(CompletableFuture[]::new));
    }

    /** Returns the number of open connections of HTTP and gRPC. */
    long openConnections() {
        return limiter.open();
    }

    /** Closes all ports, the one for metrics last. Blocks until requests in progress have completed. */
    void close() {
        try {
            closeRequestPorts().join();
        } finally {
            closeMetrics.run();
        }
    }

    private void openHttp(Duration closeTimeout) throws StartException {
        HttpFrontend frontend;
        try {
            frontend = HttpFrontend.start(
                    loops.vertx(),
                    server,
                    flags.http.options(loops.count()).withConnections(flags.connections.http(limiter, closeTimeout)));
        } catch (TlsFilesException e) {
            throw new StartException(HttpFlags.tlsFlag(e.part()) + ": " + e.getMessage(), e);
        } catch (IOException e) {
            throw refused("http", "HTTP", flags.http.address, flags.http.port, e);
        }
        http = Optional.of(new Endpoint(flags.http.address, frontend.port(), flags.http.isEncrypted()));
        counts.add(new ConnectionCounts("http", frontend::openConnections, frontend::refusedConnections));
        open.push(frontend::close);
    }

    private void openGrpc(Duration closeTimeout) throws StartException {
        GrpcFrontend frontend;
        try {
            GrpcOptions options = flags.grpc.options(closeTimeout);
            frontend = GrpcFrontend.start(
                    server, options.withLimits(flags.connections.grpc(options.limits(), limiter)), loops.groups());
        } catch (TlsFilesException e) {
            throw new StartException("--grpc-use-ssl: " + e.getMessage(), e);
        } catch (IOException e) {
            throw refused("grpc", "GRPC", flags.grpc.address, flags.grpc.port, e);
        }
        grpc = Optional.of(new Endpoint(flags.grpc.address, frontend.port()));
        List<ConnectionCounts> others = List.copyOf(counts); // the limiter counts all ports that share it
        counts.add(new ConnectionCounts(
                "grpc",
                () -> Math.max(
                        0,
                        limiter.open()
                                - others.stream()
                                        .mapToLong(other -> other.open().getAsLong())
                                        .sum()),
                () -> Math.max(
                        0,
                        limiter.refused()
                                - others.stream()
                                        .mapToLong(other -> other.refused().getAsLong())
                                        .sum())));
        open.push(frontend::close);
    }

    private void openMetrics() throws StartException {
        String address = flags.metricsAddress();
        MetricsEndpoint endpoint;
        try {
            endpoint = MetricsEndpoint.start(
                    loops.vertx(),
                    address,
                    flags.metrics,
                    server,
                    flags.connections.metrics(metricsLimiter),
                    List.copyOf(counts));
        } catch (IOException e) {
            throw refused("metrics", "Metrics", address, flags.metrics.port, e);
        }
        metrics = Optional.of(new Endpoint(address, endpoint.port()));
        closeMetrics = endpoint::close;
    }

    private static StartException refused(String name, String service, String address, int port, IOException cause) {
        String flag = "--" + name + "-port: " + port;
        String authority = new Endpoint(address, port).authority();
        for (Throwable reason = cause; reason != null; reason = reason.getCause()) {
            if (String.valueOf(reason.getMessage()).contains(IN_USE)) {
                return new StartException(
                        "failed to start " + service + " service: Unavailable - Socket '" + authority
                                + "' already in use; " + flag + " (expected: a free port)",
                        cause);
            }
        }
        return new StartException(
                flag + " (expected: an address of this machine in --" + name + "-address; " + authority
                        + " cannot be bound: " + cause.getMessage() + ")",
                cause);
    }
}
