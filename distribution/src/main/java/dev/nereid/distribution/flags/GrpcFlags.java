package dev.nereid.distribution.flags;

import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.tls.TlsFiles;
import dev.nereid.distribution.process.StartException;
import dev.nereid.grpc.GrpcOptions;
import dev.nereid.grpc.ResponseCompression;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Flags of the gRPC port. Written by the command line reader, then only read. */
public final class GrpcFlags {
    private static final GrpcOptions DEFAULT = GrpcOptions.DEFAULT;
    private static final GrpcOptions.KeepAlive KEEP_ALIVE =
            DEFAULT.connections().keepAlive();

    /** The timeout that gRPC treats as none. */
    private static final Duration NO_TIME = Duration.ofMillis(1);

    /** An environment variable without a flag, as in the reference server. */
    static final String DELAY = "TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC";

    private static final Logger LOG = LoggerFactory.getLogger(GrpcFlags.class);

    public boolean allow = true;
    public String address = FlagValue.LOOPBACK;
    public int port = 8001;

    private Duration keepAliveTime = KEEP_ALIVE.time();
    private Duration keepAliveTimeout = KEEP_ALIVE.timeout();
    private Duration minPingInterval = KEEP_ALIVE.minPingInterval();
    private boolean keepAliveWithoutCalls = KEEP_ALIVE.withoutCalls();
    private Duration maxIdle = DEFAULT.limits().maxIdle().orElse(Duration.ZERO);
    private Duration maxAge = Duration.ZERO;
    private Duration maxAgeGrace = Duration.ZERO;

    private int maxInputSize = DEFAULT.messages().maxInboundBytes();
    private int maxWaitingResponses = DEFAULT.messages().maxWaitingResponses();
    private ResponseCompression compression = DEFAULT.messages().compression();
    private Optional<Pattern> forwardedHeaders = Optional.empty();
    private final List<String> restrictions = new ArrayList<>();
    private Duration controlDelay = Duration.ZERO;

    private boolean useSsl;
    private boolean useMutualSsl;
    private Optional<Path> certificate = Optional.empty();
    private Optional<Path> key = Optional.empty();
    private Optional<Path> root = Optional.empty();

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
                        "The address to bind; 0.0.0.0 for all. Default: 127.0.0.1.",
                        value -> address = value),
                Flag.of(
                        "--grpc-port",
                        FlagValue.PORT,
                        "The port; 0 for any that is free. Default: 8001.",
                        value -> port = value));
        declarePolicy(flags);
        declareInference(flags);
        declareTls(flags);
        declareKeepAlive(flags);
        declareConnections(flags);
    }

    private void declarePolicy(Flags flags) {
        flags.add(
                Flag.of(
                        "--grpc-header-forward-pattern",
                        FlagValue.PATTERN,
                        "Headers with this pattern in their names become parameters of inference requests. Default:"
                                + " none.",
                        value -> forwardedHeaders = Optional.of(value)),
                Flag.of(
                        "--grpc-restricted-protocol",
                        FlagValue.text("PART[,PART]:KEY=VALUE"),
                        "Parts of the protocol that are restricted to clients that send the header"
                                + " triton-grpc-protocol-KEY with this value. May be given several times. The parts:"
                                + " health, metadata, inference, shared-memory, model-config, model-repository,"
                                + " statistics, trace, logging.",
                        restrictions::add));
    }

    private void declareInference(Flags flags) {
        flags.add(
                Flag.of(
                        "--grpc-max-input-size",
                        FlagValue.TEXT_BYTES,
                        "The largest request message, decompressed if it is compressed. Default: 2147483647.",
                        value -> maxInputSize = value),
                Flag.of(
                        "--grpc-infer-response-compression-level",
                        FlagValue.COMPRESSION,
                        "How much inference responses are compressed, with gzip or deflate, for clients that accept"
                                + " these. Default: none.",
                        value -> compression = value),
                Flag.of(
                        "--grpc-max-response-pool-size",
                        FlagValue.COUNT,
                        "How many responses of a stream may wait for a slow client; then no more requests are read"
                                + " from it until it has caught up. Default: 1024.",
                        value -> maxWaitingResponses = value),
                Flag.withoutEffect(
                        "--grpc-infer-thread-count",
                        FlagValue.INFER_THREADS,
                        "How many threads read requests.",
                        "event loops do, see --http-thread-count"),
                Flag.withoutEffect(
                        "--grpc-infer-allocation-pool-size",
                        FlagValue.NUMBER,
                        "How many message objects are kept for reuse.",
                        "there are none"));
    }

    private void declareTls(Flags flags) {
        flags.add(
                Flag.of(
                        "--grpc-use-ssl",
                        FlagValue.TRUTH,
                        "Whether gRPC is encrypted; needs a certificate and a key. Default: false.",
                        value -> useSsl = value),
                Flag.of(
                        "--grpc-use-ssl-mutual",
                        FlagValue.TRUTH,
                        "Whether clients must present a certificate issued by --grpc-root-cert. Any value turns"
                                + " --grpc-use-ssl on. Default: false.",
                        value -> {
                            useSsl = true;
                            useMutualSsl = value;
                        }),
                Flag.of(
                        "--grpc-server-cert",
                        FlagValue.FILE,
                        "The server's certificate chain in PEM. Checked for changes every 5 seconds, as are the key"
                                + " and the root.",
                        value -> certificate = Optional.of(value)),
                Flag.of(
                        "--grpc-server-key",
                        FlagValue.FILE,
                        "The server's private key in PEM.",
                        value -> key = Optional.of(value)),
                Flag.of(
                        "--grpc-root-cert",
                        FlagValue.FILE,
                        "The certificate authorities of clients, in PEM.",
                        value -> root = Optional.of(value)));
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
                        "How long a ping response may take. Default: 20000.",
                        value -> keepAliveTimeout = value),
                Flag.of(
                        "--grpc-keepalive-permit-without-calls",
                        FlagValue.TRUTH,
                        "Whether clients may ping without calls in progress. Default: false.",
                        value -> keepAliveWithoutCalls = value),
                Flag.of(
                        "--grpc-http2-min-recv-ping-interval-without-data",
                        FlagValue.MILLIS,
                        "How long clients must wait between two pings. Default: 300000.",
                        value -> minPingInterval = value));
    }

    private void declareConnections(Flags flags) {
        flags.add(
                Flag.withoutEffect(
                        "--grpc-http2-max-pings-without-data",
                        FlagValue.NUMBER,
                        "How many pings the server sends without data between them.",
                        "as many as it needs"),
                Flag.withoutEffect(
                        "--grpc-http2-max-ping-strikes",
                        FlagValue.NUMBER,
                        "How many pings that come too soon a client may send.",
                        "always 2"),
                Flag.of(
                        "--grpc-max-connection-idle-ms",
                        FlagValue.MILLIS_OR_NONE,
                        "How long a connection may be without calls before the server closes it; 0 for any time."
                                + " Default: 620000.",
                        value -> maxIdle = value),
                Flag.of(
                        "--grpc-max-connection-age",
                        FlagValue.MILLIS_OR_NONE,
                        "The maximum age of a connection; 0 for any age. Default: 0.",
                        value -> maxAge = value),
                Flag.of(
                        "--grpc-max-connection-age-grace",
                        FlagValue.MILLIS_OR_NONE,
                        "How long calls in progress may take on a connection past its maximum age; 0 for any time."
                                + " Default: 0.",
                        value -> maxAgeGrace = value));
    }

    /** Checks what depends on several flags. */
    void check() throws StartException {
        access();
        if (!allow || !useSsl) {
            return;
        }
        require(certificate, "--grpc-server-cert");
        require(key, "--grpc-server-key");
        if (useMutualSsl) {
            require(root, "--grpc-root-cert");
        }
    }

    /**
     * Reads the environment variable {@value #DELAY}.
     *
     * @throws StartException if the value is invalid
     */
    public void readEnvironment(Map<String, String> environment) throws StartException {
        String value = environment.getOrDefault(DELAY, "");
        if (!allow || value.isEmpty()) {
            return;
        }
        int seconds = FlagValue.NUMBER
                .reader()
                .apply(value)
                .orElseThrow(() -> new StartException(
                        DELAY + ": '" + value + "' (expected: " + FlagValue.NUMBER.expected() + ", of seconds)"));
        controlDelay = Duration.ofSeconds(seconds);
        if (seconds > 0) {
            LOG.atWarn()
                    .addKeyValue("seconds", seconds)
                    .log(DELAY + " is set: gRPC responses are delayed, except for inferences (for tests only)");
        }
    }

    private static void require(Optional<Path> file, String flag) throws StartException {
        if (file.isEmpty()) {
            throw new StartException(flag + ": missing (expected: " + flag + "=FILE, required by --grpc-use-ssl)");
        }
    }

    /**
     * Returns the options.
     *
     * @param closeTimeout the time for calls in progress when the port closes
     * @throws StartException if the flags contradict each other
     */
    public GrpcOptions options(Duration closeTimeout) throws StartException {
        GrpcOptions.Messages messages = DEFAULT.messages();
        return DEFAULT.listenOn(address, port)
                .withLimits(DEFAULT.limits().withMaxIdle(some(maxIdle)))
                .withCloseTimeout(closeTimeout.isZero() ? NO_TIME : closeTimeout)
                .withMessages(new GrpcOptions.Messages(
                        maxInputSize,
                        messages.flowControlWindowBytes(),
                        maxWaitingResponses,
                        compression,
                        controlDelay))
                .withPolicy(new GrpcOptions.Policy(access(), forwardedHeaders))
                .withConnections(new GrpcOptions.Connections(
                        new GrpcOptions.KeepAlive(
                                keepAliveTime, keepAliveTimeout, keepAliveWithoutCalls, minPingInterval),
                        some(maxAge),
                        some(maxAgeGrace),
                        tls()));
    }

    /** Parses all restrictions together, since two can contradict each other. */
    private ApiAccess access() throws StartException {
        try {
            return ApiAccess.parse(restrictions);
        } catch (IllegalArgumentException e) {
            throw new StartException("--grpc-restricted-protocol: " + e.getMessage(), e);
        }
    }

    private static Optional<Duration> some(Duration duration) {
        return duration.isZero() ? Optional.empty() : Optional.of(duration);
    }

    private Optional<TlsFiles> tls() {
        return useSsl && certificate.isPresent() && key.isPresent()
                ? Optional.of(TlsFiles.of(certificate.get(), key.get(), useMutualSsl ? root : Optional.empty()))
                : Optional.empty();
    }
}
