package dev.nereid.grpc;

import static java.util.Objects.requireNonNull;

import java.time.Duration;

/**
 * How a gRPC front end listens. Immutable.
 *
 * @param address the address to listen on
 * @param port the port to listen on; 0 for any that is free
 * @param maxInboundMessageBytes the longest message that is read; longer ones are refused
 * @param flowControlWindowBytes how much a client may send of one call before the server has read it
 * @param keepAlive how connections are found dead or abusive
 * @param closeTimeout how long calls in progress may take when the front end is closed
 */
public record GrpcOptions(
        String address,
        int port,
        int maxInboundMessageBytes,
        int flowControlWindowBytes,
        KeepAlive keepAlive,
        Duration closeTimeout) {
    /** Port 8001 of the loopback interface, messages of any size. */
    public static final GrpcOptions DEFAULT = new GrpcOptions(
            "127.0.0.1", 8001, Integer.MAX_VALUE, 4 * 1024 * 1024, KeepAlive.DEFAULT, Duration.ofSeconds(30));

    private static final int MAX_PORT = 65_535;

    /**
     * How connections are found dead or abusive. Immutable.
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

    /** Checks the components. */
    public GrpcOptions {
        requireNonNull(address, "address");
        requireNonNull(keepAlive, "keepAlive");
        requirePositive(closeTimeout, "closeTimeout");
        if (port < 0 || port > MAX_PORT) {
            throw new IllegalArgumentException("port: " + port + " (expected: 0 to " + MAX_PORT + ")");
        }
        requirePositive(maxInboundMessageBytes, "maxInboundMessageBytes");
        requirePositive(flowControlWindowBytes, "flowControlWindowBytes");
    }

    /**
     * Returns the same options for another place to listen.
     *
     * @param newAddress the address to listen on
     * @param newPort the port to listen on; 0 for any that is free
     * @return the changed options
     */
    public GrpcOptions listenOn(String newAddress, int newPort) {
        return new GrpcOptions(
                newAddress, newPort, maxInboundMessageBytes, flowControlWindowBytes, keepAlive, closeTimeout);
    }

    /**
     * Returns the same options with another limit of messages.
     *
     * @param bytes the longest message that is read
     * @return the changed options
     */
    public GrpcOptions withMaxInboundMessageBytes(int bytes) {
        return new GrpcOptions(address, port, bytes, flowControlWindowBytes, keepAlive, closeTimeout);
    }

    /**
     * Returns the same options with another flow control window.
     *
     * @param bytes how much a client may send of one call before the server has read it
     * @return the changed options
     */
    public GrpcOptions withFlowControlWindowBytes(int bytes) {
        return new GrpcOptions(address, port, maxInboundMessageBytes, bytes, keepAlive, closeTimeout);
    }

    /**
     * Returns the same options with other rules for connections.
     *
     * @param newKeepAlive how connections are found dead or abusive
     * @return the changed options
     */
    public GrpcOptions withKeepAlive(KeepAlive newKeepAlive) {
        return new GrpcOptions(
                address, port, maxInboundMessageBytes, flowControlWindowBytes, newKeepAlive, closeTimeout);
    }

    /**
     * Returns the same options with another time to close.
     *
     * @param timeout how long calls in progress may take when the front end is closed
     * @return the changed options
     */
    public GrpcOptions withCloseTimeout(Duration timeout) {
        return new GrpcOptions(address, port, maxInboundMessageBytes, flowControlWindowBytes, keepAlive, timeout);
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
