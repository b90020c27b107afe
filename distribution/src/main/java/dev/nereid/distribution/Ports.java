package dev.nereid.distribution;

import static java.net.StandardProtocolFamily.INET;
import static java.net.StandardProtocolFamily.INET6;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.api.tls.TlsCredentials;
import dev.nereid.api.tls.TlsFiles;
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
import dev.nereid.http.HttpFrontend;
import java.io.IOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProtocolFamily;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * The open ports of a server: HTTP and gRPC on the same event loops, metrics on a separate one. Used by one thread
 * after the other.
 *
 * <p>HTTP opens last: load balancers and scripts ask it whether the server is ready, and send to the other ports then.
 */
final class Ports {
    /** The message of the operating system; exception types differ between native and other transports. */
    private static final String IN_USE = "Address already in use";

    private final EventLoops loops;
    private final EndpointFlags flags;
    private final InferenceServer server;

    /** Close actions of the ports that receive requests. */
    private final Deque<Runnable> open = new ArrayDeque<>();

    private Runnable closeMetrics = () -> {};

    /** Limits the connections of HTTP and gRPC together. */
    private final ConnectionLimiter limiter;

    private final ConnectionLimiter metricsLimiter;

    /** The HTTP port, once it is open. Read by other threads for metrics. */
    private volatile @Nullable HttpFrontend openedHttp;

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
     * Checks that the ports which the flags allow can be opened, and that their files can be used. Opens none. A later
     * start of another program may still take a port.
     *
     * @throws StartException if {@link #open} would throw it
     */
    static void check(EndpointFlags flags) throws StartException {
        if (flags.http.allow) {
            checkTls(flags.http.options.tls, Ports::httpTls);
            checkFree("http", "HTTP", flags.http.options.address, flags.http.options.port);
        }
        if (flags.grpc.allow) {
            checkTls(flags.grpc.options.tls, Ports::grpcTls);
            checkFree("grpc", "GRPC", flags.grpc.options.address, flags.grpc.options.port);
        }
        if (flags.metrics.allow) {
            checkFree("metrics", "Metrics", flags.metricsAddress(), flags.metrics.port);
        }
    }

    private static void checkTls(Optional<TlsFiles> files, Function<TlsFilesException, StartException> toFailure)
            throws StartException {
        if (files.isPresent()) {
            try {
                TlsCredentials.read(files.get());
            } catch (TlsFilesException e) {
                throw toFailure.apply(e);
            }
        }
    }

    /** Binds a port as a server does, without listening: no client can connect. */
    private static void checkFree(String name, String service, String address, int port) throws StartException {
        try {
            InetAddress host = InetAddress.getByName(address);
            ProtocolFamily family = host instanceof Inet6Address ? INET6 : INET;
            try (SocketChannel socket = SocketChannel.open(family)) {
                socket.setOption(StandardSocketOptions.SO_REUSEADDR, true);
                socket.bind(new InetSocketAddress(host, port));
            }
        } catch (IOException e) {
            throw refused(name, service, address, port, e);
        } catch (UnsupportedOperationException e) {
            throw refused(name, service, address, port, new IOException("no IPv6 on this machine", e));
        }
    }

    /**
     * Opens the ports that the flags allow, on event loops that the caller owns.
     *
     * @param closeTimeout the time that requests in progress have to complete after {@link #close}
     * @throws StartException if a port cannot be opened; none stays open
     */
    static Ports open(EndpointFlags flags, EventLoops loops, InferenceServer server, Duration closeTimeout)
            throws StartException {
        Ports ports = new Ports(loops, flags, server);
        try {
            if (flags.grpc.allow) {
                ports.openGrpc(closeTimeout);
            }
            if (flags.metrics.allow) {
                ports.openMetrics();
            }
            if (flags.http.allow) {
                ports.openHttp(closeTimeout);
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
            frontend =
                    HttpFrontend.start(loops.vertx(), server, flags.http.options(loops.count(), limiter, closeTimeout));
        } catch (TlsFilesException e) {
            throw httpTls(e);
        } catch (IOException e) {
            throw refused("http", "HTTP", flags.http.options.address, flags.http.options.port, e);
        }
        http = Optional.of(new Endpoint(flags.http.options.address, frontend.port(), flags.http.isEncrypted()));
        openedHttp = frontend;
        open.push(frontend::close);
    }

    private void openGrpc(Duration closeTimeout) throws StartException {
        GrpcFrontend frontend;
        try {
            frontend = GrpcFrontend.start(server, flags.grpc.options(limiter, closeTimeout), loops.groups());
        } catch (TlsFilesException e) {
            throw grpcTls(e);
        } catch (IOException e) {
            throw refused("grpc", "GRPC", flags.grpc.options.address, flags.grpc.options.port, e);
        }
        grpc = Optional.of(new Endpoint(flags.grpc.options.address, frontend.port()));
        open.push(frontend::close);
    }

    private void openMetrics() throws StartException {
        String address = flags.metricsAddress();
        MetricsEndpoint endpoint;
        try {
            endpoint = MetricsEndpoint.start(
                    loops.metrics(),
                    address,
                    flags.metrics,
                    server,
                    flags.http.options.access,
                    flags.connections.metrics(metricsLimiter),
                    counts());
        } catch (IOException e) {
            throw refused("metrics", "Metrics", address, flags.metrics.port, e);
        }
        metrics = Optional.of(new Endpoint(address, endpoint.port()));
        closeMetrics = endpoint::close;
    }

    /** Returns the counters of the ports that receive requests, whether they are open yet or not. */
    private List<ConnectionCounts> counts() {
        List<ConnectionCounts> counts = new ArrayList<>();
        if (flags.http.allow) {
            counts.add(new ConnectionCounts(
                    "http",
                    () -> ofHttp(HttpFrontend::openConnections),
                    () -> ofHttp(HttpFrontend::refusedConnections)));
        }
        if (flags.grpc.allow) { // the limiter counts both ports
            counts.add(new ConnectionCounts(
                    "grpc",
                    () -> Math.max(0, limiter.open() - ofHttp(HttpFrontend::openConnections)),
                    () -> Math.max(0, limiter.refused() - ofHttp(HttpFrontend::refusedConnections))));
        }
        return List.copyOf(counts);
    }

    private long ofHttp(ToLongFunction<HttpFrontend> count) {
        HttpFrontend opened = openedHttp;
        return opened == null ? 0 : count.applyAsLong(opened);
    }

    private static StartException httpTls(TlsFilesException error) {
        return new StartException(HttpFlags.tlsFlag(error.part()) + ": " + error.getMessage(), error);
    }

    private static StartException grpcTls(TlsFilesException error) {
        return new StartException("--grpc-use-ssl: " + error.getMessage(), error);
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
