package dev.nereid.distribution.flags;

import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.api.tls.TlsFiles;
import dev.nereid.api.tls.TlsFilesException;
import dev.nereid.distribution.process.StartException;
import dev.nereid.http.HttpOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;

/** Flags of the HTTP port. Written by the command line reader, then only read. */
public final class HttpFlags {
    private static final String CERTIFICATE_FLAG = "--http-server-cert";
    private static final String KEY_FLAG = "--http-server-key";
    private static final String ROOTS_FLAG = "--http-root-cert";

    public final HttpOptions.Builder options = new HttpOptions.Builder();
    public boolean allow = true;

    /** Number of event loops; empty for the default, which depends on the machine. */
    private OptionalInt eventLoops = OptionalInt.empty();

    private OptionalInt maxInputSize = OptionalInt.empty();
    private OptionalLong maxRequestSize = OptionalLong.empty();
    private final List<String> restrictions = new ArrayList<>();
    private boolean useSsl;
    private boolean useMutualSsl;
    private String certificate = "";
    private String key = "";
    private String root = "";

    HttpFlags() {
        options.drainWindow = Duration.ofSeconds(2);
    }

    void declare(Flags flags) {
        flags.add("--allow-http", FlagValue.TRUTH, allow, v -> allow = v).help("Whether there is an HTTP port.");
        flags.add("--http-address", FlagValue.text("ADDRESS"), options.address, v -> options.address = v)
                .help("The address to bind; 0.0.0.0 for all.");
        flags.add("--http-port", FlagValue.PORT, options.port, v -> options.port = v)
                .help("The port; 0 for any that is free.");
        flags.add("--http-thread-count", FlagValue.COUNT, v -> eventLoops = OptionalInt.of(v))
                .help("How many event loops serve HTTP and gRPC. Default: half the processors, at least 1.");
        flags.add("--http-max-input-size", FlagValue.TEXT_BYTES, v -> maxInputSize = OptionalInt.of(v))
                .help("The largest request, decompressed if it is compressed. Default: " + options.maxJsonBytes
                        + ", for JSON only; see --http-max-request-size.");
        flags.add("--http-max-request-size", FlagValue.BODY_BYTES, v -> maxRequestSize = OptionalLong.of(v))
                .help("The largest request with its binary tensors, decompressed if it is compressed; at least the"
                        + " limit of JSON. Default: --http-max-input-size if that is given, otherwise "
                        + options.maxRequestBytes + ".");
        flags.add("--http-header-forward-pattern", FlagValue.PATTERN, v -> options.forwardedHeaders = Optional.of(v))
                .help("Headers with this pattern in their names, in any case, become parameters of requests to infer,"
                        + " generate and generate_stream. Default: none.");
        flags.add("--http-restricted-api", FlagValue.text("GROUP[,GROUP...]:HEADER=SECRET"), restrictions::add)
                .help("A part of the API that needs a header with a secret: health, metadata, inference,"
                        + " shared-memory, model-config, model-repository, statistics, trace or logging. May be given"
                        + " several times.");
        declareEncryption(flags);
    }

    private void declareEncryption(Flags flags) {
        flags.add("--http-use-ssl", FlagValue.TRUTH, useSsl, v -> useSsl = v).help("Whether HTTP is encrypted.");
        flags.add("--http-use-ssl-mutual", FlagValue.TRUTH, useMutualSsl, v -> useMutualSsl = v)
                .help("Whether HTTP is encrypted and clients need a certificate too.");
        flags.add(CERTIFICATE_FLAG, FlagValue.text("FILE"), v -> certificate = v)
                .help("The server's certificate chain in PEM. Reloaded when the file changes.");
        flags.add(KEY_FLAG, FlagValue.text("FILE"), v -> key = v)
                .help("The private key of the server's certificate in PEM. Reloaded when the file changes.");
        flags.add(ROOTS_FLAG, FlagValue.text("FILE"), v -> root = v)
                .help("The certificate authorities of clients, in PEM. Reloaded when the file changes.");
    }

    /** Checks what depends on several flags, and adds it to the options. */
    void check() throws StartException {
        try {
            options.access = ApiAccess.parse("api", restrictions);
        } catch (IllegalArgumentException e) {
            throw new StartException("--http-restricted-api: " + e.getMessage(), e);
        }
        if (allow && isEncrypted()) {
            options.tls = Optional.of(TlsFiles.of(
                    file(CERTIFICATE_FLAG, certificate),
                    file(KEY_FLAG, key),
                    useMutualSsl ? Optional.of(file(ROOTS_FLAG, root)) : Optional.empty()));
        }
    }

    public boolean isEncrypted() {
        return useSsl || useMutualSsl;
    }

    public static String tlsFlag(TlsFilesException.Part part) {
        return switch (part) {
            case CERTIFICATE -> CERTIFICATE_FLAG;
            case KEY -> KEY_FLAG;
            case CLIENT_ROOTS -> ROOTS_FLAG;
        };
    }

    private static Path file(String flag, String name) throws StartException {
        if (name.isEmpty()) {
            throw new StartException(flag + ": missing (expected: " + flag + "=FILE)");
        }
        return Path.of(name);
    }

    public int eventLoops(int processors) {
        return eventLoops.orElse(HttpOptions.eventLoops(processors));
    }

    /** Returns the options; the drain takes at most half of {@code closeTimeout}, the time for closing the port. */
    public HttpOptions options(int loops, ConnectionLimiter limiter, Duration closeTimeout) {
        Duration half = closeTimeout.dividedBy(2);
        options.eventLoops = loops;
        options.limiter = limiter;
        options.drainWindow = half.compareTo(options.drainWindow) < 0 ? half : options.drainWindow;
        options.closeTimeout = closeTimeout;
        maxInputSize.ifPresent(bytes -> {
            options.maxJsonBytes = bytes;
            options.maxRequestBytes = bytes;
        });
        options.maxRequestBytes = Math.max(options.maxJsonBytes, maxRequestSize.orElse(options.maxRequestBytes));
        return options.build();
    }
}
