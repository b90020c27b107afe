package dev.nereid.distribution;

import dev.nereid.http.HttpOptions;
import java.time.Duration;
import java.util.Optional;
import java.util.regex.Pattern;

/** The flags of HTTP. Written by the command line reader, then only read. */
final class HttpFlags {
    boolean allow = true;
    String address = EndpointFlags.LOCAL;
    int port = 8000;

    /** 0 stands for the default, which depends on the machine. */
    private int eventLoops;

    private int maxInputSize = 67_108_864;

    private Optional<Pattern> forwardedHeaders = Optional.empty();

    /** Adds the flags that set these fields. */
    void declare(Flags flags) {
        flags.add(
                Flag.of(
                        "--allow-http",
                        FlagValue.TRUTH,
                        "Whether there is an HTTP port. Default: true.",
                        value -> allow = value),
                Flag.of(
                        "--http-address",
                        FlagValue.text("ADDRESS"),
                        "The address to listen at; 0.0.0.0 for all. Default: 127.0.0.1.",
                        value -> address = value),
                Flag.of(
                        "--http-port",
                        FlagValue.PORT,
                        "The port; 0 for any that is free. Default: 8000.",
                        value -> port = value),
                Flag.of(
                        "--http-thread-count",
                        FlagValue.COUNT,
                        "How many event loops serve HTTP and gRPC. Default: half the processors, at least 1.",
                        value -> eventLoops = value),
                Flag.of(
                        "--http-max-input-size",
                        FlagValue.TEXT_BYTES,
                        "The largest JSON request. Default: 67108864.",
                        value -> maxInputSize = value),
                Flag.of(
                        "--http-header-forward-pattern",
                        FlagValue.PATTERN,
                        "Headers whose names this is found in, in whatever case, become parameters of an inference."
                                + " Default: none.",
                        value -> forwardedHeaders = Optional.of(value)));
    }

    /** Returns how many event loops serve all ports. */
    int eventLoops(int processors) {
        return eventLoops == 0 ? HttpOptions.eventLoops(processors) : eventLoops;
    }

    /** Returns the options; requests in progress may take the given time when the port closes. */
    HttpOptions options(int loops, Duration exitTimeout) {
        long largest = Math.max(maxInputSize, HttpOptions.DEFAULT.maxRequestBytes());
        HttpOptions options = HttpOptions.DEFAULT
                .listeningOn(address, port)
                .withEventLoops(loops)
                .limitedTo(maxInputSize, largest)
                .closingWithin(exitTimeout);
        return forwardedHeaders.map(options::forwarding).orElse(options);
    }
}
