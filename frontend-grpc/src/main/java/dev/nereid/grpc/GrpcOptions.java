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
     * @param maxInboundBytes the maximum length of a message; longer ones are refused
     * @param flowControlWindowBytes the bytes of one call that a client may send before the server has read them
     * @param maxWaitingResponses the number of responses waiting for a slow client at which reading of its stream
     *     pauses; decoupled models, which are not slowed down, may exceed it
     * @param compression the compression of inference responses
     * @param controlDelay the delay of responses of methods that do not infer, for tests of clients; zero for none
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
     * @param keepAlive the keep-alive options
     * @param maxAge the maximum age of a connection
     * @param maxAgeGrace how long calls in progress may take on a connection that has reached the maximum age
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
        private static final long HEAP_BYTES_PER_CALL = 16 << 10;
        private static final long MIN_TRANSPORT_BYTES = 32L << 20;

        /**
         * The default limits. They allow any number of connections, as many calls as fit the heap, and a minute for
         * clients that do not read.
         */
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

        /** Not the method of the options: the defaults of the options need these limits. */
        private static void check(boolean isGood, String name, Object value) {
            if (!isGood) {
                throw new IllegalArgumentException(name + ": " + value + " (expected: > 0)");
            }
        }

        /**
         * Returns the same limits with another limiter of connections.
         *
         * @param limiter counts connections
         * @return the changed limits
         */
        public Limits withOpenConnections(ConnectionLimiter limiter) {
            return new Limits(
                    limiter, openCalls, unreadBytes, transportBytes, responseStall, handshakeTimeout, maxIdle);
        }

        /**
         * Returns the same limits with other limits of open calls and unread responses.
         *
         * @param calls the maximum number of open calls
         * @param bytes the bytes of large responses that may wait for clients that do not read
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
     * @param timeout how long the response to a ping may take before the connection is closed
     * @param withoutCalls whether clients may ping while they have no call in progress
     * @param minPingInterval how long clients must wait between pings
     */
    public record KeepAlive(Duration time, Duration timeout, boolean withoutCalls, Duration minPingInterval) {
        /**
         * The default keep-alive. The server sends a ping after two hours of silence, and waits 20 seconds for the
         * response; clients may ping every five minutes.
         */
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
     * @param access the API groups that require a secret
     * @param forwardedHeaders the pattern found in the names of headers that become parameters of inference requests
     */
    public record Policy(ApiAccess access, Optional<Pattern> forwardedHeaders) {
        /** Nothing is restricted; no headers are forwarded. */
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
     * Returns the same options with another address and port.
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
     * @param changed the options of messages
     * @return the changed options
     */
    public GrpcOptions withMessages(Messages changed) {
        return new GrpcOptions(address, port, changed, connections, limits, policy, closeTimeout);
    }

    /**
     * Returns the same options with another limit of the length of messages.
     *
     * @param bytes the maximum length of a message
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
     * Returns the same options with other options of connections.
     *
     * @param changed the options of connections
     * @return the changed options
     */
    public GrpcOptions withConnections(Connections changed) {
        return new GrpcOptions(address, port, messages, changed, limits, policy, closeTimeout);
    }

    /**
     * Returns the same options with other limits.
     *
     * @param changed the limits
     * @return the changed options
     */
    public GrpcOptions withLimits(Limits changed) {
        return new GrpcOptions(address, port, messages, connections, changed, policy, closeTimeout);
    }

    /**
     * Returns the same options with another policy.
     *
     * @param changed the policy
     * @return the changed options
     */
    public GrpcOptions withPolicy(Policy changed) {
        return new GrpcOptions(address, port, messages, connections, limits, changed, closeTimeout);
    }

    /**
     * Returns the same options with another timeout of closing.
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
     * @param delay the delay of responses of methods that do not infer; zero for none
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
