package dev.nereid.distribution;

import dev.nereid.http.HttpOptions;
import java.time.Duration;
import picocli.CommandLine.Option;

/** The flags of HTTP. Written by the command line reader, then only read. */
final class HttpFlags {
    @Option(
            names = "--allow-http",
            arity = "1",
            paramLabel = "BOOL",
            defaultValue = "true",
            converter = FlagValues.Truth.class,
            description = "Whether there is an HTTP port. Default: ${DEFAULT-VALUE}.")
    boolean allow = true;

    @Option(
            names = "--http-address",
            paramLabel = "ADDRESS",
            defaultValue = EndpointFlags.LOCAL,
            description = EndpointFlags.ADDRESS)
    String address = EndpointFlags.LOCAL;

    @Option(
            names = "--http-port",
            paramLabel = "PORT",
            defaultValue = "8000",
            converter = FlagValues.Port.class,
            description = EndpointFlags.PORT)
    int port = 8000;

    @Option(
            names = "--http-thread-count",
            paramLabel = "N",
            converter = FlagValues.Count.class,
            description = "How many event loops serve HTTP and gRPC. Default: half the processors, at least 1.")
    private int eventLoops;

    @Option(
            names = "--http-max-input-size",
            paramLabel = "BYTES",
            defaultValue = "67108864",
            converter = FlagValues.JsonBytes.class,
            description = "The largest JSON request. Default: ${DEFAULT-VALUE}.")
    private int maxInputSize = 67_108_864;

    /** Returns how many event loops serve all ports. */
    int eventLoops(int processors) {
        return eventLoops == 0 ? HttpOptions.eventLoops(processors) : eventLoops;
    }

    /** Returns the options; requests in progress may take the given time when the port closes. */
    HttpOptions options(int loops, Duration exitTimeout) {
        long largest = Math.max(maxInputSize, HttpOptions.DEFAULT.maxRequestBytes());
        return new HttpOptions(address, port, loops, maxInputSize, largest, exitTimeout);
    }
}
