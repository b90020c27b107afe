package dev.nereid.distribution;

import dev.nereid.grpc.GrpcOptions;
import java.time.Duration;

/** The flags of gRPC. Written by the command line reader, then only read. */
final class GrpcFlags {
    private static final GrpcOptions DEFAULT = GrpcOptions.DEFAULT;

    /** What gRPC takes for no time at all. */
    private static final Duration NO_TIME = Duration.ofMillis(1);

    boolean allow = true;
    String address = EndpointFlags.LOCAL;
    int port = 8001;

    private Duration keepAliveTime = DEFAULT.keepAlive().time();
    private Duration keepAliveTimeout = DEFAULT.keepAlive().timeout();
    private Duration minPingInterval = DEFAULT.keepAlive().minPingInterval();
    private boolean keepAliveWithoutCalls = DEFAULT.keepAlive().withoutCalls();

    /** Adds the flags that set these fields. */
    void declare(Flags flags) {
        flags.add(
                Flag.of(
                        "--allow-grpc",
                        FlagValue.TRUTH,
                        "Whether there is a gRPC port. Default: true.",
                        value -> allow = value),
                Flag.of(
                        "--grpc-address",
                        FlagValue.text("ADDRESS"),
                        "The address to listen at; 0.0.0.0 for all. Default: 127.0.0.1.",
                        value -> address = value),
                Flag.of(
                        "--grpc-port",
                        FlagValue.PORT,
                        "The port; 0 for any that is free. Default: 8001.",
                        value -> port = value));
        declareKeepAlive(flags);
    }

    private void declareKeepAlive(Flags flags) {
        flags.add(
                Flag.of(
                        "--grpc-keepalive-time",
                        FlagValue.MILLIS,
                        "How long a connection may be silent until the server pings. Default: 7200000.",
                        value -> keepAliveTime = value),
                Flag.of(
                        "--grpc-keepalive-timeout",
                        FlagValue.MILLIS,
                        "How long the answer to a ping may take. Default: 20000.",
                        value -> keepAliveTimeout = value),
                Flag.of(
                        "--grpc-keepalive-permit-without-calls",
                        FlagValue.TRUTH,
                        "Whether clients may ping while they ask nothing. Default: false.",
                        value -> keepAliveWithoutCalls = value),
                Flag.of(
                        "--grpc-http2-min-recv-ping-interval-without-data",
                        FlagValue.MILLIS,
                        "How long clients must wait between two pings. Default: 300000.",
                        value -> minPingInterval = value));
    }

    /** Returns the options; calls in progress may take the given time when the port closes. */
    GrpcOptions options(Duration exitTimeout) {
        return DEFAULT.listenOn(address, port)
                .withCloseTimeout(exitTimeout.isZero() ? NO_TIME : exitTimeout)
                .withKeepAlive(new GrpcOptions.KeepAlive(
                        keepAliveTime, keepAliveTimeout, keepAliveWithoutCalls, minPingInterval));
    }
}
