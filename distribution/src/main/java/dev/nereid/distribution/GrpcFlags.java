package dev.nereid.distribution;

import dev.nereid.grpc.GrpcOptions;
import java.time.Duration;
import picocli.CommandLine.Option;

/** The flags of gRPC. Written by the command line reader, then only read. */
final class GrpcFlags {
    private static final GrpcOptions DEFAULT = GrpcOptions.DEFAULT;

    /** What gRPC takes for no time at all. */
    private static final Duration NO_TIME = Duration.ofMillis(1);

    @Option(
            names = "--allow-grpc",
            arity = "1",
            paramLabel = "BOOL",
            defaultValue = "true",
            converter = FlagValues.Truth.class,
            description = "Whether there is a gRPC port. Default: ${DEFAULT-VALUE}.")
    boolean allow = true;

    @Option(
            names = "--grpc-address",
            paramLabel = "ADDRESS",
            defaultValue = EndpointFlags.LOCAL,
            description = EndpointFlags.ADDRESS)
    String address = EndpointFlags.LOCAL;

    @Option(
            names = "--grpc-port",
            paramLabel = "PORT",
            defaultValue = "8001",
            converter = FlagValues.Port.class,
            description = EndpointFlags.PORT)
    int port = 8001;

    @Option(
            names = "--grpc-keepalive-time",
            paramLabel = "MS",
            defaultValue = "7200000",
            converter = FlagValues.Millis.class,
            description = "How long a connection may be silent until the server pings. Default: ${DEFAULT-VALUE}.")
    private Duration keepAliveTime = DEFAULT.keepAlive().time();

    @Option(
            names = "--grpc-keepalive-timeout",
            paramLabel = "MS",
            defaultValue = "20000",
            converter = FlagValues.Millis.class,
            description = "How long the answer to a ping may take. Default: ${DEFAULT-VALUE}.")
    private Duration keepAliveTimeout = DEFAULT.keepAlive().timeout();

    @Option(
            names = "--grpc-keepalive-permit-without-calls",
            arity = "1",
            paramLabel = "BOOL",
            defaultValue = "false",
            converter = FlagValues.Truth.class,
            description = "Whether clients may ping while they ask nothing. Default: ${DEFAULT-VALUE}.")
    private boolean keepAliveWithoutCalls;

    @Option(
            names = "--grpc-http2-min-recv-ping-interval-without-data",
            paramLabel = "MS",
            defaultValue = "300000",
            converter = FlagValues.Millis.class,
            description = "How long clients must wait between two pings. Default: ${DEFAULT-VALUE}.")
    private Duration minPingInterval = DEFAULT.keepAlive().minPingInterval();

    /** Returns the options; calls in progress may take the given time when the port closes. */
    GrpcOptions options(Duration exitTimeout) {
        return DEFAULT.listenOn(address, port)
                .withCloseTimeout(exitTimeout.isZero() ? NO_TIME : exitTimeout)
                .withKeepAlive(new GrpcOptions.KeepAlive(
                        keepAliveTime, keepAliveTimeout, keepAliveWithoutCalls, minPingInterval));
    }
}
