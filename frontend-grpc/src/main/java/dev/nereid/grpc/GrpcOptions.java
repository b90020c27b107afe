package dev.nereid.grpc;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.api.tls.TlsFiles;
import io.netty.util.internal.PlatformDependent;
import java.time.Duration;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * Options of a gRPC front end. Immutable.
 *
 * @param address the address to listen on
 * @param port the port to listen on; 0 for any that is free
 * @param messages what may be sent
 * @param connections how connections are kept
 * @param limits how much clients may hold, and for how long
 * @param policy who may ask what
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
    /** Port 8001 of the loopback interface, messages of any size, no encryption, nothing restricted. */
    public static final GrpcOptions DEFAULT = new GrpcOptions(
            "127.0.0.1",
            8001,
            Messages.DEFAULT,
            Connections.DEFAULT,
            Limits.DEFAULT,
            Policy.OPEN,
            Duration.ofSeconds(30));

    private static final int MAX_PORT = 65_535;

    /**
     * Size limits, flow control and compression of messages. Immutable.
     *
     * @param maxInboundBytes the longest message that is read; longer ones are refused
     * @param flowControlWindowBytes how much a client may send of one call before the server has read it
     * @param maxWaitingResponses how many responses of a stream may wait for a client that reads slowly, until the stream
     *     is not read on; decoupled models, which nothing holds back, may go further
     * @param compression how inference responses are compressed
     * @param controlDelay how long the responses of methods that do not infer wait, for tests of clients; zero for not at
     *     all
     */
    public record Messages(
            int maxInboundBytes,
            int flowControlWindowBytes,
            int maxWaitingResponses,
            ResponseCompression compression,
            Duration controlDelay) {
        /** Messages of any size, no compression. */
        public static final Messages DEFAULT =
                new Messages(Integer.MAX_VALUE, 4 * 1024 * 1024, 1024, ResponseCompression.NONE, Duration.ZERO);

        /** Checks the components. */
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
     * @param keepAlive how they are found dead or abusive
     * @param maxAge how old they get
     * @param maxAgeGrace how long calls in progress may take on a connection that is too old
     * @param tls the certificate files that encrypt them; empty if they are not encrypted
     */
    public record Connections(
            KeepAlive keepAlive, Optional<Duration> maxAge, Optional<Duration> maxAgeGrace, Optional<TlsFiles> tls) {
        /** Connections of any age, not encrypted. */
        public static final Connections DEFAULT =
                new Connections(KeepAlive.DEFAULT, Optional.empty(), Optional.empty(), Optional.empty());

        /** Checks the components. */
        public Connections {
            requireNonNull(keepAlive, "keepAlive");
            requireNonNull(tls, "tls");
            maxAge.ifPresent(age -> requirePositive(age, "maxAge"));
            maxAgeGrace.ifPresent(grace -> requirePositive(grace, "maxAgeGrace"));
        }
    }

    /**
     * Limits of what clients may hold, and for how long. Immutable.
     *
     * @param openConnections counts connections; may be shared with other front ends
     * @param openCalls how many calls of all clients may be open at a time; further ones are refused. When a quarter of
     *     them have responses that clients do not read, connections of such clients are closed
     * @param unreadBytes how many bytes of large responses may wait for clients that do not read, until connections of
     *     such clients are closed
     * @param transportBytes how many bytes of messages of any size may wait in the memory of the transport, those that
     *     arrive and those that clients do not read; more are refused
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
        private static final long HEAP_BYTES_PER_CALL = 16 << 10;
        private static final long MIN_TRANSPORT_BYTES = 32L << 20;

        /** Any number of connections, calls as the heap has room for, a minute for clients that do not read. */
        public static final Limits DEFAULT = new Limits(
                ConnectionLimiter.unlimited(),
                Math.min(100_000, Runtime.getRuntime().maxMemory() / HEAP_BYTES_PER_CALL),
                Math.max(MIN_TRANSPORT_BYTES, PlatformDependent.maxDirectMemory() / 4),
                Math.max(MIN_TRANSPORT_BYTES, PlatformDependent.maxDirectMemory() / 2),
                Optional.of(Duration.ofSeconds(60)),
                Optional.of(Duration.ofSeconds(10)),
                Optional.of(Duration.ofSeconds(620)));

        /** Checks the components. */
        public Limits {
            requireNonNull(openConnections, "openConnections");
            check(openCalls > 0, "openCalls", openCalls);
            check(unreadBytes > 0, "unreadBytes", unreadBytes);
            check(transportBytes > 0, "transportBytes", transportBytes);
            responseStall.ifPresent(time -> check(time.isPositive(), "responseStall", time));
            handshakeTimeout.ifPresent(time -> check(time.isPositive(), "handshakeTimeout", time));
            maxIdle.ifPresent(time -> check(time.isPositive(), "maxIdle", time));
        }

        /** Not that of the options, whose defaults need these. */
        private static void check(boolean isGood, String name, Object value) {
            if (!isGood) {
                throw new IllegalArgumentException(name + ": " + value + " (expected: > 0)");
            }
        }

        /**
         * Returns the same limits with another count of connections.
         *
         * @param limiter counts connections
         * @return the changed limits
         */
        public Limits withOpenConnections(ConnectionLimiter limiter) {
            return new Limits(
                    limiter, openCalls, unreadBytes, transportBytes, responseStall, handshakeTimeout, maxIdle);
        }

        /**
         * Returns the same limits with others of what is open and unread.
         *
         * @param calls how many calls may be open at a time
         * @param bytes how many bytes of large responses may wait for clients that do not read
         * @return the changed limits
         */
        public Limits withUnread(long calls, long bytes) {
            return new Limits(openConnections, calls, bytes, transportBytes, responseStall, handshakeTimeout, maxIdle);
        }

        /**
         * Returns the same limits with another time for clients that do not read.
         *
         * @param time how long a client may read nothing while responses wait; empty for any time
         * @return the changed limits
         */
        public Limits withResponseStall(Optional<Duration> time) {
            return new Limits(openConnections, openCalls, unreadBytes, transportBytes, time, handshakeTimeout, maxIdle);
        }

        /**
         * Returns the same limits with another time for handshakes.
         *
         * @param time how long the handshakes of TLS and HTTP/2 may take together; empty for any time
         * @return the changed limits
         */
        public Limits withHandshakeTimeout(Optional<Duration> time) {
            return new Limits(openConnections, openCalls, unreadBytes, transportBytes, responseStall, time, maxIdle);
        }

        /**
         * Returns the same limits with another time for idle connections.
         *
         * @param time how long a connection may have no call; empty for any time
         * @return the changed limits
         */
        public Limits withMaxIdle(Optional<Duration> time) {
            return new Limits(
                    openConnections, openCalls, unreadBytes, transportBytes, responseStall, handshakeTimeout, time);
        }
    }

    /**
     * Keep-alive options of connections. Immutable.
     *
     * @param time how long a connection may be silent before the server pings it
     * @param timeout how long the answer to a ping may take before the connection is closed
     * @param withoutCalls whether clients may ping while they have no call in progress
     * @param minPingInterval how long clients must wait between pings
     */
    public record KeepAlive(Duration time, Duration timeout, boolean withoutCalls, Duration minPingInterval) {
        /** Ping after two hours of silence, wait 20 seconds for the answer; clients may ping every five minutes. */
        public static final KeepAlive DEFAULT =
                new KeepAlive(Duration.ofHours(2), Duration.ofSeconds(20), false, Duration.ofMinutes(5));

        /** Checks the components. */
        public KeepAlive {
            requirePositive(time, "time");
            requirePositive(timeout, "timeout");
            requirePositive(minPingInterval, "minPingInterval");
        }
    }

    /**
     * Restrictions of the protocol and the headers forwarded to backends. Immutable.
     *
     * @param access which parts of the protocol need a secret
     * @param forwardedHeaders found in the names of headers that become parameters of inference requests
     */
    public record Policy(ApiAccess access, Optional<Pattern> forwardedHeaders) {
        /** Everybody may ask everything; no headers are passed on. */
        public static final Policy OPEN = new Policy(ApiAccess.OPEN, Optional.empty());

        /** Checks the components. */
        public Policy {
            requireNonNull(access, "access");
            requireNonNull(forwardedHeaders, "forwardedHeaders");
        }
    }

    /** Checks the components. */
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

    /**
     * Returns the same options for another place to listen.
     *
     * @param newAddress the address to listen on
     * @param newPort the port to listen on; 0 for any that is free
     * @return the changed options
     */
    public GrpcOptions listenOn(String newAddress, int newPort) {
        return new GrpcOptions(newAddress, newPort, messages, connections, limits, policy, closeTimeout);
    }

    /**
     * Returns the same options with other messages.
     *
     * @param changed what may be sent
     * @return the changed options
     */
    public GrpcOptions withMessages(Messages changed) {
        return new GrpcOptions(address, port, changed, connections, limits, policy, closeTimeout);
    }

    /**
     * Returns the same options with another limit of messages.
     *
     * @param bytes the longest message that is read
     * @return the changed options
     */
    public GrpcOptions withMaxInboundMessageBytes(int bytes) {
        return withMessages(new Messages(
                bytes,
                messages.flowControlWindowBytes(),
                messages.maxWaitingResponses(),
                messages.compression(),
                messages.controlDelay()));
    }

    /**
     * Returns the same options with other rules for connections.
     *
     * @param changed how connections are kept
     * @return the changed options
     */
    public GrpcOptions withConnections(Connections changed) {
        return new GrpcOptions(address, port, messages, changed, limits, policy, closeTimeout);
    }

    /**
     * Returns the same options with other limits.
     *
     * @param changed how much clients may hold, and for how long
     * @return the changed options
     */
    public GrpcOptions withLimits(Limits changed) {
        return new GrpcOptions(address, port, messages, connections, changed, policy, closeTimeout);
    }

    /**
     * Returns the same options with another policy.
     *
     * @param changed who may ask what
     * @return the changed options
     */
    public GrpcOptions withPolicy(Policy changed) {
        return new GrpcOptions(address, port, messages, connections, limits, changed, closeTimeout);
    }

    /**
     * Returns the same options with another time to close.
     *
     * @param timeout how long calls in progress may take when the front end is closed
     * @return the changed options
     */
    public GrpcOptions withCloseTimeout(Duration timeout) {
        return new GrpcOptions(address, port, messages, connections, limits, policy, timeout);
    }

    /**
     * Returns the same options with another delay of responses.
     *
     * @param delay how long the responses of methods that do not infer wait; zero for not at all
     * @return the changed options
     */
    public GrpcOptions withControlDelay(Duration delay) {
        return withMessages(new Messages(
                messages.maxInboundBytes(),
                messages.flowControlWindowBytes(),
                messages.maxWaitingResponses(),
                messages.compression(),
                delay));
    }

    private static void requirePositive(Duration duration, String name) {
        if (duration.isNegative() || duration.isZero()) {
            throw new IllegalArgumentException(name + ": " + duration + " (expected: > 0)");
        }
    }

    private static void requirePositive(int number, String name) {
        if (number <= 0) {
            throw new IllegalArgumentException(name + ": " + number + " (expected: > 0)");
        }
    }
}
