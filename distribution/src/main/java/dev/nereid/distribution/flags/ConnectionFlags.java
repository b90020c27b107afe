package dev.nereid.distribution.flags;

import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.grpc.GrpcOptions;
import dev.nereid.http.connection.HttpConnectionOptions;
import dev.nereid.http.connection.HttpTimeouts;
import java.time.Duration;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Flags of connection limits, connection timeouts and the drain at shutdown. Written by the command line reader, then
 * only read.
 */
public final class ConnectionFlags {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionFlags.class);
    private static final HttpTimeouts DEFAULT = HttpTimeouts.DEFAULT;
    private static final int DEFAULT_MAX_CONNECTIONS = 16_384;

    /** File descriptors reserved for purposes other than connections. */
    private static final long OTHER_DESCRIPTORS = 128;

    /** Divisor of the file descriptors that the metrics port may use. */
    private static final int METRICS_DIVISOR = 8;

    private int max = DEFAULT_MAX_CONNECTIONS;
    private int maxPerAddress;
    private HttpTimeouts timeouts = DEFAULT;
    private Duration drainWindow = Duration.ofSeconds(2);
    private Duration exitDelay = Duration.ZERO;

    /** Adds the flags that set these fields. */
    void declare(Flags flags) {
        flags.add(
                Flag.of(
                        "--max-connections",
                        FlagValue.NUMBER,
                        "How many connections HTTP and gRPC may have together, and the port for metrics by itself; 0"
                                + " for any. Fewer if the process may not open so many files. An idle HTTP connection"
                                + " is closed for a new one. Default: 16384.",
                        value -> max = value),
                Flag.of(
                        "--max-connections-per-address",
                        FlagValue.NUMBER,
                        "How many of these connections one client address may have; 0 for any. Default: 0.",
                        value -> maxPerAddress = value),
                Flag.of(
                        "--tls-handshake-timeout-secs",
                        FlagValue.SECONDS,
                        "How long the handshake of a connection, of TLS and HTTP/2, may take; 0 for any time."
                                + " Default: 10.",
                        value -> timeouts = timeouts.withTlsHandshake(value)),
                Flag.of(
                        "--response-stall-timeout-secs",
                        FlagValue.SECONDS,
                        "How long a client may read nothing of a pending response; 0 for any time. Default: 60.",
                        value -> timeouts = timeouts.withResponseStall(value)));
        declareHttp(flags);
        flags.add(Flag.of(
                "--exit-delay-secs",
                FlagValue.SECONDS,
                "How long the server reports that it is not ready but continues to serve, before it stops receiving"
                        + " requests; part of --exit-timeout-secs. Default: 0.",
                value -> exitDelay = value));
    }

    private void declareHttp(Flags flags) {
        flags.add(
                Flag.of(
                        "--http-header-timeout-secs",
                        FlagValue.SECONDS,
                        "How long the header of a request may take to arrive; 0 for any time. Default: 30.",
                        value -> timeouts = timeouts.withHeader(value)),
                Flag.of(
                        "--http-min-body-rate",
                        FlagValue.AMOUNT_OF_BYTES,
                        "How many bytes of a body must arrive in each second, on average over 10 seconds; 0 for any"
                                + " rate. Default: 1024.",
                        value -> timeouts = timeouts.withBodyRate(value, DEFAULT.bodyGrace())),
                Flag.of(
                        "--http-idle-timeout-secs",
                        FlagValue.SECONDS,
                        "How long a connection of HTTP may have no request in progress; 0 for any time. Default: 620.",
                        value -> timeouts = timeouts.withIdle(value)),
                Flag.of(
                        "--http-drain-secs",
                        FlagValue.SECONDS,
                        "How long HTTP continues to respond during shutdown, with Connection: close in each response."
                                + " Default: 2.",
                        value -> drainWindow = value));
    }

    /** Returns the timeouts of HTTP; the timeout of the TLS handshake applies to gRPC too. */
    HttpTimeouts timeouts() {
        return timeouts;
    }

    /** Returns how long the server continues to serve while it reports not ready. */
    public Duration exitDelay() {
        return exitDelay;
    }

    /** Returns a new limiter for HTTP and gRPC together. */
    public ConnectionLimiter limiter(long descriptors) {
        long available = Math.max(1, descriptors - OTHER_DESCRIPTORS);
        int bound = limitedBy(available - available / METRICS_DIVISOR);
        if (max != 0 && bound < max) {
            LOG.atInfo()
                    .addKeyValue("connections", bound)
                    .addKeyValue("fileDescriptors", descriptors)
                    .log("--max-connections lowered");
        }
        return new ConnectionLimiter(bound, maxPerAddress);
    }

    /** Returns a new limiter for the port of metrics. */
    public ConnectionLimiter metricsLimiter(long descriptors) {
        return new ConnectionLimiter(
                limitedBy(Math.max(1, descriptors - OTHER_DESCRIPTORS) / METRICS_DIVISOR), maxPerAddress);
    }

    private int limitedBy(long descriptors) {
        int available = Math.clamp(descriptors, 1, Integer.MAX_VALUE);
        return max == 0 ? available : Math.min(max, available);
    }

    /**
     * Returns the connection options of HTTP.
     *
     * @param limiter limits the number of connections
     * @param closeTimeout the time for closing the port
     */
    public HttpConnectionOptions http(ConnectionLimiter limiter, Duration closeTimeout) {
        Duration half = closeTimeout.dividedBy(2);
        return new HttpConnectionOptions(
                limiter, timeouts, half.compareTo(drainWindow) < 0 ? half : drainWindow, closeTimeout);
    }

    /**
     * Returns the connection limits of gRPC.
     *
     * @param others the limits that other flags set
     * @param limiter limits the number of connections
     */
    public GrpcOptions.Limits grpc(GrpcOptions.Limits others, ConnectionLimiter limiter) {
        return others.withOpenConnections(limiter)
                .withResponseStall(some(timeouts.responseStall()))
                .withHandshakeTimeout(some(timeouts.tlsHandshake()));
    }

    private static Optional<Duration> some(Duration duration) {
        return duration.isZero() ? Optional.empty() : Optional.of(duration);
    }

    /** Returns the connection options of the metrics port. */
    public HttpConnectionOptions metrics(ConnectionLimiter limiter) {
        return new HttpConnectionOptions(limiter, timeouts, Duration.ZERO, Duration.ZERO);
    }
}
