package dev.nereid.distribution.flags;

import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.tls.TlsFiles;
import dev.nereid.api.tls.TlsFilesException;
import dev.nereid.distribution.process.StartException;
import dev.nereid.http.HttpOptions;
import dev.nereid.http.HttpSecurity;
import dev.nereid.http.body.BodyLimits;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.regex.Pattern;

/** Flags of the HTTP port. Written by the command line reader, then only read. */
public final class HttpFlags {
    private static final String CERTIFICATE_FLAG = "--http-server-cert";
    private static final String KEY_FLAG = "--http-server-key";
    private static final String ROOTS_FLAG = "--http-root-cert";

    public boolean allow = true;
    public String address = FlagValue.LOOPBACK;
    public int port = 8000;

    /** Number of event loops; 0 for the default, which depends on the machine. */
    private int eventLoops;

    private OptionalInt maxInputSize = OptionalInt.empty();

    private OptionalLong maxRequestSize = OptionalLong.empty();

    private Optional<Pattern> forwardedHeaders = Optional.empty();
    private final List<String> restrictions = new ArrayList<>();
    private HttpSecurity security = HttpSecurity.NONE;
    private boolean useSsl;
    private boolean useMutualSsl;
    private String certificate = "";
    private String key = "";
    private String root = "";

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
                        "The address to bind; 0.0.0.0 for all. Default: 127.0.0.1.",
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
                        "The largest request, decompressed if it is compressed. Default: 67108864, for JSON only; see"
                                + " --http-max-request-size.",
                        value -> maxInputSize = OptionalInt.of(value)),
                Flag.of(
                        "--http-max-request-size",
                        FlagValue.BODY_BYTES,
                        "The largest request with its binary tensors, decompressed if it is compressed; at least the"
                                + " limit of JSON. Default: --http-max-input-size if that is given, otherwise"
                                + " 2147483648.",
                        value -> maxRequestSize = OptionalLong.of(value)),
                Flag.of(
                        "--http-header-forward-pattern",
                        FlagValue.PATTERN,
                        "Headers with this pattern in their names, in any case, become parameters of requests to"
                                + " infer, generate and generate_stream."
                                + " Default: none.",
                        value -> forwardedHeaders = Optional.of(value)),
                Flag.of(
                        "--http-restricted-api",
                        FlagValue.text("GROUP[,GROUP...]:HEADER=SECRET"),
                        "A part of the API that needs a header with a secret: health, metadata, inference,"
                                + " shared-memory, model-config, model-repository, statistics, trace or logging. May be"
                                + " given several times.",
                        restrictions::add));
        declareEncryption(flags);
    }

    private void declareEncryption(Flags flags) {
        flags.add(
                Flag.of(
                        "--http-use-ssl",
                        FlagValue.TRUTH,
                        "Whether HTTP is encrypted. Default: false.",
                        value -> useSsl = value),
                Flag.of(
                        "--http-use-ssl-mutual",
                        FlagValue.TRUTH,
                        "Whether HTTP is encrypted and clients need a certificate too. Default: false.",
                        value -> useMutualSsl = value),
                Flag.of(
                        CERTIFICATE_FLAG,
                        FlagValue.text("FILE"),
                        "The server's certificate chain in PEM. Reloaded when the file changes.",
                        value -> certificate = value),
                Flag.of(
                        KEY_FLAG,
                        FlagValue.text("FILE"),
                        "The private key of the server's certificate in PEM. Reloaded when the file changes.",
                        value -> key = value),
                Flag.of(
                        ROOTS_FLAG,
                        FlagValue.text("FILE"),
                        "The certificate authorities of clients, in PEM. Reloaded when the file changes.",
                        value -> root = value));
    }

    /** Checks what depends on several flags. */
    void check() throws StartException {
        try {
            security = HttpSecurity.NONE.withAccess(ApiAccess.parse("api", restrictions));
        } catch (IllegalArgumentException e) {
            throw new StartException("--http-restricted-api: " + e.getMessage(), e);
        }
        if (allow && isEncrypted()) {
            security = security.withTls(TlsFiles.of(
                    file(CERTIFICATE_FLAG, certificate),
                    file(KEY_FLAG, key),
                    useMutualSsl ? Optional.of(file(ROOTS_FLAG, root)) : Optional.empty()));
        }
    }

    /** Returns whether HTTP is encrypted. */
    public boolean isEncrypted() {
        return useSsl || useMutualSsl;
    }

    /** Returns the flag that names a TLS file. */
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

    /** Returns the number of event loops for all ports. */
    public int eventLoops(int processors) {
        return eventLoops == 0 ? HttpOptions.eventLoops(processors) : eventLoops;
    }

    /** Returns the options, without connection limits. */
    public HttpOptions options(int loops) {
        long json = maxInputSize.isPresent() ? maxInputSize.getAsInt() : BodyLimits.DEFAULT.maxJsonBytes();
        long all = maxRequestSize.orElse(maxInputSize.isPresent() ? json : BodyLimits.DEFAULT.maxRequestBytes());
        HttpOptions options = HttpOptions.DEFAULT
                .withAddress(address, port)
                .withEventLoops(loops)
                .withBodyLimits(json, Math.max(json, all))
                .withSecurity(security);
        return forwardedHeaders.map(options::withForwardedHeaders).orElse(options);
    }
}
