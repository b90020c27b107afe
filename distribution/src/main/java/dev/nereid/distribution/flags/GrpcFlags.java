package dev.nereid.distribution.flags;

import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.api.tls.TlsFiles;
import dev.nereid.distribution.process.StartException;
import dev.nereid.grpc.GrpcOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Flags of the gRPC port. Written by the command line reader, then only read. */
public final class GrpcFlags {
    /** The timeout that gRPC treats as none. */
    private static final Duration NO_TIME = Duration.ofMillis(1);

    /** An environment variable without a flag, as in the reference server. */
    static final String DELAY = "TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC";

    private static final Logger LOG = LoggerFactory.getLogger(GrpcFlags.class);

    public final GrpcOptions.Builder options = new GrpcOptions.Builder();
    public boolean allow = true;

    private final List<String> restrictions = new ArrayList<>();
    private boolean useSsl;
    private boolean useMutualSsl;
    private Optional<Path> certificate = Optional.empty();
    private Optional<Path> key = Optional.empty();
    private Optional<Path> root = Optional.empty();

    void declare(Flags flags) {
        flags.add("--allow-grpc", FlagValue.TRUTH, allow, v -> allow = v).help("Whether there is a gRPC port.");
        flags.add("--grpc-address", FlagValue.text("ADDRESS"), options.address, v -> options.address = v)
                .help("The address to bind; 0.0.0.0 for all.");
        flags.add("--grpc-port", FlagValue.PORT, options.port, v -> options.port = v)
                .help("The port; 0 for any that is free.");
        flags.add("--grpc-header-forward-pattern", FlagValue.PATTERN, v -> options.forwardedHeaders = Optional.of(v))
                .help("Headers with this pattern in their names become parameters of inference requests. Default:"
                        + " none.");
        flags.add("--grpc-restricted-protocol", FlagValue.text("PART[,PART]:KEY=VALUE"), restrictions::add)
                .help("Parts of the protocol that are restricted to clients that send the header"
                        + " triton-grpc-protocol-KEY with this value. May be given several times. The parts: health,"
                        + " metadata, inference, shared-memory, model-config, model-repository, statistics, trace,"
                        + " logging.");
        declareMessages(flags);
        declareTls(flags);
        declareConnections(flags);
    }

    private void declareMessages(Flags flags) {
        flags.add(
                        "--grpc-max-input-size",
                        FlagValue.TEXT_BYTES,
                        options.maxInboundBytes,
                        v -> options.maxInboundBytes = v)
                .help("The largest request message, decompressed if it is compressed.");
        flags.add(
                        "--grpc-infer-response-compression-level",
                        FlagValue.COMPRESSION,
                        options.compression,
                        v -> options.compression = v)
                .help("How much inference responses are compressed, with gzip or deflate, for clients that accept"
                        + " these.");
        flags.add(
                        "--grpc-max-response-pool-size",
                        FlagValue.COUNT,
                        options.maxWaitingResponses,
                        v -> options.maxWaitingResponses = v)
                .help("How many responses of a stream may wait for a slow client; then no more requests are read from"
                        + " it until it has caught up.");
        CompatibilityFlags.add(
                flags,
                "--grpc-infer-thread-count",
                FlagValue.INFER_THREADS,
                "event loops do, see --http-thread-count",
                "How many threads read requests.");
        CompatibilityFlags.add(
                flags,
                "--grpc-infer-allocation-pool-size",
                FlagValue.NUMBER,
                "there are none",
                "How many message objects are kept for reuse.");
    }

    private void declareTls(Flags flags) {
        flags.add("--grpc-use-ssl", FlagValue.TRUTH, useSsl, v -> useSsl = v)
                .help("Whether gRPC is encrypted; needs a certificate and a key.");
        flags.add("--grpc-use-ssl-mutual", FlagValue.TRUTH, useMutualSsl, v -> {
                    useSsl = true;
                    useMutualSsl = v;
                })
                .help("Whether clients must present a certificate issued by --grpc-root-cert. Any value turns"
                        + " --grpc-use-ssl on.");
        flags.add("--grpc-server-cert", FlagValue.FILE, v -> certificate = Optional.of(v))
                .help("The server's certificate chain in PEM. Checked for changes every 5 seconds, as are the key and"
                        + " the root.");
        flags.add("--grpc-server-key", FlagValue.FILE, v -> key = Optional.of(v))
                .help("The server's private key in PEM.");
        flags.add("--grpc-root-cert", FlagValue.FILE, v -> root = Optional.of(v))
                .help("The certificate authorities of clients, in PEM.");
    }

    private void declareConnections(Flags flags) {
        flags.add("--grpc-keepalive-time", FlagValue.MILLIS, options.keepAliveTime, v -> options.keepAliveTime = v)
                .help("How long a connection may be silent until the server pings.");
        flags.add(
                        "--grpc-keepalive-timeout",
                        FlagValue.MILLIS,
                        options.keepAliveTimeout,
                        v -> options.keepAliveTimeout = v)
                .help("How long a ping response may take.");
        flags.add(
                        "--grpc-keepalive-permit-without-calls",
                        FlagValue.TRUTH,
                        options.keepAliveWithoutCalls,
                        v -> options.keepAliveWithoutCalls = v)
                .help("Whether clients may ping without calls in progress.");
        flags.add(
                        "--grpc-http2-min-recv-ping-interval-without-data",
                        FlagValue.MILLIS,
                        options.minPingInterval,
                        v -> options.minPingInterval = v)
                .help("How long clients must wait between two pings.");
        CompatibilityFlags.add(
                flags,
                "--grpc-http2-max-pings-without-data",
                FlagValue.NUMBER,
                "as many as it needs",
                "How many pings the server sends without data between them.");
        CompatibilityFlags.add(
                flags,
                "--grpc-http2-max-ping-strikes",
                FlagValue.NUMBER,
                "always 2",
                "How many pings that come too soon a client may send.");
        flags.add("--grpc-max-connection-idle-ms", FlagValue.MILLIS_OR_NONE, options.maxIdle, v -> options.maxIdle = v)
                .help("How long a connection may be without calls before the server closes it; 0 for any time.");
        flags.add("--grpc-max-connection-age", FlagValue.MILLIS_OR_NONE, options.maxAge, v -> options.maxAge = v)
                .help("The maximum age of a connection; 0 for any age.");
        flags.add(
                        "--grpc-max-connection-age-grace",
                        FlagValue.MILLIS_OR_NONE,
                        options.maxAgeGrace,
                        v -> options.maxAgeGrace = v)
                .help("How long calls in progress may take on a connection past its maximum age; 0 for any time.");
    }

    /** Checks what depends on several flags, and adds it to the options. */
    void check() throws StartException {
        try { // all restrictions together, since two can contradict each other
            options.access = ApiAccess.parse(restrictions);
        } catch (IllegalArgumentException e) {
            throw new StartException("--grpc-restricted-protocol: " + e.getMessage(), e);
        }
        if (allow && useSsl) {
            options.tls = Optional.of(TlsFiles.of(
                    file(certificate, "--grpc-server-cert"),
                    file(key, "--grpc-server-key"),
                    useMutualSsl ? Optional.of(file(root, "--grpc-root-cert")) : Optional.empty()));
        }
    }

    private static Path file(Optional<Path> file, String flag) throws StartException {
        return file.orElseThrow(
                () -> new StartException(flag + ": missing (expected: " + flag + "=FILE, required by --grpc-use-ssl)"));
    }

    /** Reads the environment variable {@value #DELAY}; fails if its value is invalid. */
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
        options.controlDelay = Duration.ofSeconds(seconds);
        if (seconds > 0) {
            LOG.atWarn()
                    .addKeyValue("seconds", seconds)
                    .log(DELAY + " is set: gRPC responses are delayed, except for inferences (for tests only)");
        }
    }

    /** Returns the options, with the time for calls in progress when the port closes. */
    public GrpcOptions options(ConnectionLimiter limiter, Duration closeTimeout) {
        options.openConnections = limiter;
        options.closeTimeout = closeTimeout.isZero() ? NO_TIME : closeTimeout;
        return options.build();
    }
}
