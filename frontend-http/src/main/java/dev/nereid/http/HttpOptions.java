package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.api.tls.TlsFiles;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.connection.HttpConnectionOptions;
import dev.nereid.http.connection.HttpTimeouts;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/**
 * Options of the HTTP front end. Immutable.
 *
 * {@snippet :
 * HttpOptions options = HttpOptions.of(http -> {
 *     http.port = 0;
 *     http.maxRequestBytes = 1L << 30;
 * });
 * }
 *
 * @param port the port to listen on, or 0 for any that is free
 * @param forwardedHeaders matches the names of headers that become request parameters
 * @param security the access restrictions and TLS
 * @param connections the limits and timeouts of connections
 */
public record HttpOptions(
        String address,
        int port,
        int eventLoops,
        BodyLimits bodyLimits,
        Optional<Pattern> forwardedHeaders,
        HttpSecurity security,
        HttpConnectionOptions connections) {
    private static final int MAX_PORT = 65535;

    public HttpOptions {
        requireNonNull(address, "address");
        requireNonNull(bodyLimits, "bodyLimits");
        requireNonNull(forwardedHeaders, "forwardedHeaders");
        requireNonNull(security, "security");
        requireNonNull(connections, "connections");
        if (port < 0 || port > MAX_PORT) {
            throw new IllegalArgumentException("http-port: " + port + " (expected: 0 to " + MAX_PORT + ")");
        }
        if (eventLoops < 1) {
            throw new IllegalArgumentException("http-thread-count: " + eventLoops + " (expected: >= 1)");
        }
    }

    /** Returns the default options with changes. */
    public static HttpOptions of(Consumer<Builder> change) {
        Builder builder = new Builder();
        change.accept(builder);
        return builder.build();
    }

    /** Returns the default number of event loops: half the processors, at least 1, since instances need the others. */
    public static int eventLoops(int processors) {
        return Math.max(1, processors / 2);
    }

    /**
     * The options as fields with their defaults, which the records describe: {@link HttpOptions}, {@link BodyLimits},
     * {@link HttpSecurity}, {@link HttpConnectionOptions} and {@link HttpTimeouts}. Confined to one thread.
     */
    public static final class Builder {
        public String address = "127.0.0.1";
        public int port = 8000;
        public int eventLoops = 1;
        public Optional<Pattern> forwardedHeaders = Optional.empty();

        public long maxJsonBytes = 64L << 20;
        public long maxRequestBytes = 2L << 30;
        public long maxInlineBytes = 256L << 10;

        public ApiAccess access = ApiAccess.OPEN;
        public Optional<TlsFiles> tls = Optional.empty();

        public ConnectionLimiter limiter = ConnectionLimiter.unlimited();
        public Duration drainWindow = Duration.ZERO;
        public Duration closeTimeout = Duration.ofSeconds(30);

        public Duration headerTimeout = Duration.ofSeconds(30);
        public long minBodyBytesPerSecond = 1024;
        public Duration bodyGrace = Duration.ofSeconds(10);
        /** Longer than load balancers and pools of clients keep idle connections. */
        public Duration idleTimeout = Duration.ofSeconds(620);

        public Duration tlsHandshakeTimeout = Duration.ofSeconds(10);
        public Duration responseStallTimeout = Duration.ofSeconds(60);

        /**
         * Returns the options.
         *
         * @throws IllegalArgumentException if a value is out of its range
         */
        public HttpOptions build() {
            return new HttpOptions(
                    address,
                    port,
                    eventLoops,
                    new BodyLimits(maxJsonBytes, maxRequestBytes, maxInlineBytes),
                    forwardedHeaders,
                    new HttpSecurity(access, tls),
                    new HttpConnectionOptions(limiter, timeouts(), drainWindow, closeTimeout));
        }

        public HttpTimeouts timeouts() {
            return new HttpTimeouts(
                    headerTimeout,
                    minBodyBytesPerSecond,
                    bodyGrace,
                    idleTimeout,
                    tlsHandshakeTimeout,
                    responseStallTimeout);
        }
    }
}
