package dev.nereid.distribution.flags;

import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.grpc.GrpcOptions;
import dev.nereid.http.HttpOptions;
import dev.nereid.http.connection.HttpConnectionOptions;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Flags of connection limits, connection timeouts and the drain at shutdown. Written by the command line reader, then
 * only read.
 */
public final class ConnectionFlags {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectionFlags.class);

    /** File descriptors reserved for purposes other than connections. */
    private static final long OTHER_DESCRIPTORS = 128;

    /** Divisor of the file descriptors that the metrics port may use. */
    private static final int METRICS_DIVISOR = 8;

    private final HttpOptions.Builder http;
    private final GrpcOptions.Builder grpc;
    private int max = 16_384;
    private int maxPerAddress;
    private Duration exitDelay = Duration.ZERO;

    ConnectionFlags(HttpOptions.Builder http, GrpcOptions.Builder grpc) {
        this.http = http;
        this.grpc = grpc;
    }

    void declare(Flags flags) {
        flags.add("--max-connections", FlagValue.NUMBER, max, v -> max = v)
                .help("How many connections HTTP and gRPC may have together, and the port for metrics by itself; 0 for"
                        + " any. Fewer if the process may not open so many files. An idle HTTP connection is closed"
                        + " for a new one.");
        flags.add("--max-connections-per-address", FlagValue.NUMBER, maxPerAddress, v -> maxPerAddress = v)
                .help("How many of these connections one client address may have; 0 for any.");
        flags.add("--tls-handshake-timeout-secs", FlagValue.SECONDS, http.tlsHandshakeTimeout, v -> {
                    http.tlsHandshakeTimeout = v;
                    grpc.handshakeTimeout = FlagValue.limit(v);
                })
                .help("How long the handshake of a connection, of TLS and HTTP/2, may take; 0 for any time.");
        flags.add("--response-stall-timeout-secs", FlagValue.SECONDS, http.responseStallTimeout, v -> {
                    http.responseStallTimeout = v;
                    grpc.responseStall = FlagValue.limit(v);
                })
                .help("How long a client may read nothing of a pending response; 0 for any time.");
        flags.add("--http-header-timeout-secs", FlagValue.SECONDS, http.headerTimeout, v -> http.headerTimeout = v)
                .help("How long the header of a request may take to arrive; 0 for any time.");
        flags.add(
                        "--http-min-body-rate",
                        FlagValue.AMOUNT_OF_BYTES,
                        http.minBodyBytesPerSecond,
                        v -> http.minBodyBytesPerSecond = v)
                .help("How many bytes of a body must arrive in each second, on average over 10 seconds; 0 for any"
                        + " rate.");
        flags.add("--http-idle-timeout-secs", FlagValue.SECONDS, http.idleTimeout, v -> http.idleTimeout = v)
                .help("How long a connection of HTTP may have no request in progress; 0 for any time.");
        flags.add("--http-drain-secs", FlagValue.SECONDS, http.drainWindow, v -> http.drainWindow = v)
                .help("How long HTTP continues to respond during shutdown, with Connection: close in each response.");
        flags.add("--exit-delay-secs", FlagValue.SECONDS, exitDelay, v -> exitDelay = v)
                .help("How long the server reports that it is not ready but continues to serve, before it stops"
                        + " receiving requests; part of --exit-timeout-secs.");
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

    public HttpConnectionOptions metrics(ConnectionLimiter limiter) {
        return new HttpConnectionOptions(limiter, http.timeouts(), Duration.ZERO, Duration.ZERO);
    }
}
