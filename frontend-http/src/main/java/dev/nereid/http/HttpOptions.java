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
 * @param eventLoops how many event loops serve connections
 * @param bodyLimits the limits of bodies
 * @param forwardedHeaders found in the names of those headers that become parameters of an inference
 * @param security who may do what
 * @param connections the bounds on connections
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
     * Port 8000 on this machine only; 64 MiB of JSON, 256 KiB of it on an event loop, 2 GiB in all; half a minute to
     * close.
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

    /** Checks the components. */
    public HttpOptions {
        requireNonNull(address, "address");
        requireNonNull(bodyLimits, "limits");
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
     * Returns how many event loops serve best: one for two processors, since instances need the others.
     *
     * @param processors how many processors the server may use
     * @return at least 1
     */
    public static int eventLoops(int processors) {
        return Math.max(1, processors / 2);
    }

    /**
     * Returns the same options for another place to listen.
     *
     * @param changedAddress the address to listen on
     * @param changedPort the port to listen on, or 0 for any that is free
     * @return the changed options
     */
    public HttpOptions withAddress(String changedAddress, int changedPort) {
        return new HttpOptions(
                changedAddress, changedPort, eventLoops, bodyLimits, forwardedHeaders, security, connections);
    }

    /**
     * Returns the same options with other limits.
     *
     * @param json the largest JSON text that is accepted
     * @param request the largest request body that is accepted
     * @return the changed options
     */
    public HttpOptions withBodyLimits(long json, long request) {
        return withLimits(new BodyLimits(json, request, bodyLimits.maxInlineBytes()));
    }

    /**
     * Returns the same options with another number of event loops.
     *
     * @param changed how many event loops serve connections
     * @return the changed options
     */
    public HttpOptions withEventLoops(int changed) {
        return new HttpOptions(address, port, changed, bodyLimits, forwardedHeaders, security, connections);
    }

    /**
     * Returns the same options with another share of the event loops in long texts.
     *
     * @param changed the longest JSON text that an event loop reads itself, and the most bytes of tensors that it writes
     *     as JSON itself
     * @return the changed options
     */
    public HttpOptions withMaxInlineBytes(long changed) {
        return withLimits(new BodyLimits(bodyLimits.maxJsonBytes(), bodyLimits.maxRequestBytes(), changed));
    }

    /**
     * Returns the same options with headers that become parameters of an inference.
     *
     * @param pattern found in the names of those headers
     * @return the changed options
     */
    public HttpOptions withForwardedHeaders(Pattern pattern) {
        return new HttpOptions(address, port, eventLoops, bodyLimits, Optional.of(pattern), security, connections);
    }

    /**
     * Returns the same options with other security.
     *
     * @param changed who may do what
     * @return the changed options
     */
    public HttpOptions withSecurity(HttpSecurity changed) {
        return new HttpOptions(address, port, eventLoops, bodyLimits, forwardedHeaders, changed, connections);
    }

    /**
     * Returns the same options with other bounds on connections.
     *
     * @param changed the bounds
     * @return the changed options
     */
    public HttpOptions withConnections(HttpConnectionOptions changed) {
        return new HttpOptions(address, port, eventLoops, bodyLimits, forwardedHeaders, security, changed);
    }

    private HttpOptions withLimits(BodyLimits changed) {
        return new HttpOptions(address, port, eventLoops, changed, forwardedHeaders, security, connections);
    }
}
