package dev.nereid.grpc;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.api.tls.TlsFiles;
import io.netty.util.internal.PlatformDependent;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/**
 * Options of a gRPC front end. Immutable.
 *
 * @param port the port to listen on; 0 for any that is free
 * @param messages the limits, flow control and compression of messages
 * @param connections the keep-alive, maximum age and encryption of connections
 * @param limits the limits of clients' connections, calls and memory
 * @param policy the restrictions of the protocol
 * @param closeTimeout how long calls in progress may take when the front end is closed
 */
public record GrpcOptions(
        String address,
        int port,
        Messages messages,
        Connections connections,
        Limits limits,
        Policy policy,
        Duration closeTimeout) {
    private static final int MAX_PORT = 65_535;

    /**
     * Size limits, flow control and compression of messages. Immutable.
     *
     * @param maxInboundBytes the maximum length of a message; longer ones are refused
     * @param flowControlWindowBytes the bytes of one call that a client may send before the server has read them
     * @param maxWaitingResponses the number of responses waiting for a slow client at which reading of its stream
     *     pauses; decoupled models, which are not slowed down, may exceed it
     * @param controlDelay the delay of responses of methods that do not infer, for tests of clients; zero for none
     */
    public record Messages(
            int maxInboundBytes,
            int flowControlWindowBytes,
            int maxWaitingResponses,
            ResponseCompression compression,
            Duration controlDelay) {
        public Messages {
            requireNonNull(compression, "compression");
            requirePositive(maxInboundBytes, "maxInboundBytes");
            requirePositive(flowControlWindowBytes, "flowControlWindowBytes");
            requirePositive(maxWaitingResponses, "maxWaitingResponses");
            if (controlDelay.isNegative()) {
                throw new IllegalArgumentException("controlDelay: " + controlDelay + " (expected: >= 0)");
            }
        }
    }

    /**
     * Keep-alive, maximum age and encryption of connections. Immutable.
     *
     * @param maxAgeGrace how long calls in progress may take on a connection that has reached the maximum age
     * @param tls the certificate files that encrypt them; empty if they are not encrypted
     */
    public record Connections(
            KeepAlive keepAlive, Optional<Duration> maxAge, Optional<Duration> maxAgeGrace, Optional<TlsFiles> tls) {
        public Connections {
            requireNonNull(keepAlive, "keepAlive");
            requireNonNull(tls, "tls");
            maxAge.ifPresent(age -> requirePositive(age, "maxAge"));
            maxAgeGrace.ifPresent(grace -> requirePositive(grace, "maxAgeGrace"));
        }
    }

    /**
     * Limits of clients' connections, calls and memory. Immutable.
     *
     * @param openConnections counts connections; may be shared with other front ends
     * @param openCalls the maximum number of open calls of all clients; further ones are refused. When a quarter of
     *     them have responses that clients do not read, connections of such clients are closed
     * @param unreadBytes the bytes of large responses that may wait before connections of clients that do not read are
     *     closed
     * @param transportBytes the maximum bytes of messages in the memory of the transport, both arriving ones and
     *     messages that clients do not read; more are refused
     * @param responseStall how long a client may read nothing while responses wait; empty for any time
     * @param handshakeTimeout how long the handshakes of TLS and HTTP/2 may take together; empty for any time
     * @param maxIdle how long a connection may have no call; empty for any time
     */
    public record Limits(
            ConnectionLimiter openConnections,
            long openCalls,
            long unreadBytes,
            long transportBytes,
            Optional<Duration> responseStall,
            Optional<Duration> handshakeTimeout,
            Optional<Duration> maxIdle) {
        public Limits {
            requireNonNull(openConnections, "openConnections");
            requirePositive(openCalls, "openCalls");
            requirePositive(unreadBytes, "unreadBytes");
            requirePositive(transportBytes, "transportBytes");
            responseStall.ifPresent(time -> requirePositive(time, "responseStall"));
            handshakeTimeout.ifPresent(time -> requirePositive(time, "handshakeTimeout"));
            maxIdle.ifPresent(time -> requirePositive(time, "maxIdle"));
        }
    }

    /**
     * Keep-alive options of connections. Immutable.
     *
     * @param time how long a connection may be silent before the server pings it
     * @param timeout how long the response to a ping may take before the connection is closed
     * @param withoutCalls whether clients may ping while they have no call in progress
     * @param minPingInterval how long clients must wait between pings
     */
    public record KeepAlive(Duration time, Duration timeout, boolean withoutCalls, Duration minPingInterval) {
        public KeepAlive {
            requirePositive(time, "time");
            requirePositive(timeout, "timeout");
            requirePositive(minPingInterval, "minPingInterval");
        }
    }

    /**
     * Restrictions of the protocol and the headers forwarded to backends. Immutable.
     *
     * @param access the API groups that require a secret
     * @param forwardedHeaders the pattern found in the names of headers that become parameters of inference requests
     */
    public record Policy(ApiAccess access, Optional<Pattern> forwardedHeaders) {
        public Policy {
            requireNonNull(access, "access");
            requireNonNull(forwardedHeaders, "forwardedHeaders");
        }
    }

    public GrpcOptions {
        requireNonNull(address, "address");
        requireNonNull(messages, "messages");
        requireNonNull(connections, "connections");
        requireNonNull(limits, "limits");
        requireNonNull(policy, "policy");
        requirePositive(closeTimeout, "closeTimeout");
        if (port < 0 || port > MAX_PORT) {
            throw new IllegalArgumentException("port: " + port + " (expected: 0 to " + MAX_PORT + ")");
        }
    }

    /** Returns the default options with changes. */
    public static GrpcOptions of(Consumer<Builder> change) {
        Builder builder = new Builder();
        change.accept(builder);
        return builder.build();
    }

    private static void requirePositive(Duration duration, String name) {
        if (duration.isNegative() || duration.isZero()) {
            throw new IllegalArgumentException(name + ": " + duration + " (expected: > 0)");
        }
    }

    private static void requirePositive(long number, String name) {
        if (number <= 0) {
            throw new IllegalArgumentException(name + ": " + number + " (expected: > 0)");
        }
    }

    /**
     * The options as fields with their defaults, which {@link GrpcOptions} and its records describe. Confined to one
     * thread.
     */
    public static final class Builder {
        private static final long HEAP_BYTES_PER_CALL = 16 << 10;
        private static final long MIN_TRANSPORT_BYTES = 32L << 20;

        public String address = "127.0.0.1";
        public int port = 8001;
        public Duration closeTimeout = Duration.ofSeconds(30);

        public int maxInboundBytes = Integer.MAX_VALUE;
        public int flowControlWindowBytes = 4 << 20;
        public int maxWaitingResponses = 1024;
        public ResponseCompression compression = ResponseCompression.NONE;
        public Duration controlDelay = Duration.ZERO;

        public Duration keepAliveTime = Duration.ofHours(2);
        public Duration keepAliveTimeout = Duration.ofSeconds(20);
        public boolean keepAliveWithoutCalls;
        public Duration minPingInterval = Duration.ofMinutes(5);
        public Optional<Duration> maxAge = Optional.empty();
        public Optional<Duration> maxAgeGrace = Optional.empty();
        public Optional<TlsFiles> tls = Optional.empty();

        public ConnectionLimiter openConnections = ConnectionLimiter.unlimited();
        public long openCalls = Math.min(100_000, Runtime.getRuntime().maxMemory() / HEAP_BYTES_PER_CALL);
        public long unreadBytes = Math.max(MIN_TRANSPORT_BYTES, PlatformDependent.maxDirectMemory() / 4);
        public long transportBytes = Math.max(MIN_TRANSPORT_BYTES, PlatformDependent.maxDirectMemory() / 2);
        public Optional<Duration> responseStall = Optional.of(Duration.ofSeconds(60));
        public Optional<Duration> handshakeTimeout = Optional.of(Duration.ofSeconds(10));
        public Optional<Duration> maxIdle = Optional.of(Duration.ofSeconds(620));

        public ApiAccess access = ApiAccess.OPEN;
        public Optional<Pattern> forwardedHeaders = Optional.empty();

        /**
         * Returns the options.
         *
         * @throws IllegalArgumentException if a value is out of its range
         */
        public GrpcOptions build() {
            return new GrpcOptions(
                    address,
                    port,
                    new Messages(
                            maxInboundBytes, flowControlWindowBytes, maxWaitingResponses, compression, controlDelay),
                    new Connections(
                            new KeepAlive(keepAliveTime, keepAliveTimeout, keepAliveWithoutCalls, minPingInterval),
                            maxAge,
                            maxAgeGrace,
                            tls),
                    new Limits(
                            openConnections,
                            openCalls,
                            unreadBytes,
                            transportBytes,
                            responseStall,
                            handshakeTimeout,
                            maxIdle),
                    new Policy(access, forwardedHeaders),
                    closeTimeout);
        }
    }
}
