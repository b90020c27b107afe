package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.connection.HttpConnectionOptions;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * Options of the HTTP front end. Immutable.
 *
 * @param address the address to listen on
 * @param port the port to listen on, or 0 for any that is free
 * @param eventLoops the number of event loops
 * @param bodyLimits the limits of bodies
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
    /**
     * The default options. They are port 8000 of the loopback address; 64 MiB of JSON, 256 KiB of it on an event loop,
     * 2 GiB in all; a close timeout of 30 seconds.
     */
    public static final HttpOptions DEFAULT = new HttpOptions(
            "127.0.0.1",
            8000,
            1,
            BodyLimits.DEFAULT,
            Optional.empty(),
            HttpSecurity.NONE,
            HttpConnectionOptions.unlimited());

    private static final int MAX_PORT = 65535;

    /** Validates the components. */
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

    /**
     * Returns the default number of event loops: half the processors, since instances need the others.
     *
     * @param processors the number of processors of the server
     * @return at least 1
     */
    public static int eventLoops(int processors) {
        return Math.max(1, processors / 2);
    }

    /**
     * Returns the same options with another address and port.
     *
     * @param newAddress the address to listen on
     * @param newPort the port to listen on, or 0 for any that is free
     * @return the new options
     */
    public HttpOptions withAddress(String newAddress, int newPort) {
        return new HttpOptions(newAddress, newPort, eventLoops, bodyLimits, forwardedHeaders, security, connections);
    }

    /**
     * Returns the same options with other body limits.
     *
     * @param json the largest JSON text that is accepted
     * @param request the largest request body that is accepted
     * @return the new options
     */
    public HttpOptions withBodyLimits(long json, long request) {
        return withLimits(new BodyLimits(json, request, bodyLimits.maxInlineBytes()));
    }

    /**
     * Returns the same options with another number of event loops.
     *
     * @param count the number of event loops
     * @return the new options
     */
    public HttpOptions withEventLoops(int count) {
        return new HttpOptions(address, port, count, bodyLimits, forwardedHeaders, security, connections);
    }

    /**
     * Returns the same options with another limit of JSON that event loops read and write.
     *
     * @param maxBytes the largest JSON text that an event loop reads, and the maximum bytes of tensors that it writes as
     *     JSON; workers read and write larger ones
     * @return the new options
     */
    public HttpOptions withMaxInlineBytes(long maxBytes) {
        return withLimits(new BodyLimits(bodyLimits.maxJsonBytes(), bodyLimits.maxRequestBytes(), maxBytes));
    }

    /**
     * Returns the same options with headers that become request parameters.
     *
     * @param pattern matches the names of those headers
     * @return the new options
     */
    public HttpOptions withForwardedHeaders(Pattern pattern) {
        return new HttpOptions(address, port, eventLoops, bodyLimits, Optional.of(pattern), security, connections);
    }

    /**
     * Returns the same options with other security.
     *
     * @return the new options
     */
    public HttpOptions withSecurity(HttpSecurity newSecurity) {
        return new HttpOptions(address, port, eventLoops, bodyLimits, forwardedHeaders, newSecurity, connections);
    }

    /**
     * Returns the same options with other connection options.
     *
     * @param newConnections the connection options
     * @return the new options
     */
    public HttpOptions withConnections(HttpConnectionOptions newConnections) {
        return new HttpOptions(address, port, eventLoops, bodyLimits, forwardedHeaders, security, newConnections);
    }

    private HttpOptions withLimits(BodyLimits newLimits) {
        return new HttpOptions(address, port, eventLoops, newLimits, forwardedHeaders, security, connections);
    }
}
