package dev.nereid.http.connection;

import static java.util.Objects.requireNonNull;

import java.time.Duration;

/**
 * Timeouts of HTTP connections. Immutable; zero disables a timeout. {@link ConnectionDeadlines} applies them to a
 * connection.
 *
 * @param header how long the header of a request may take from its first byte, and the first byte of the first request
 *     after the connection was accepted
 * @param minBodyBytesPerSecond the minimum rate of a body while the server reads it
 * @param bodyGrace the period over which the rate of a body is measured, again and again
 * @param idle how long a connection may have no request after a response
 * @param tlsHandshake how long the handshake of an encrypted connection may take
 * @param responseStall how long responses may wait for a client that does not read them
 */
public record HttpTimeouts(
        Duration header,
        long minBodyBytesPerSecond,
        Duration bodyGrace,
        Duration idle,
        Duration tlsHandshake,
        Duration responseStall) {
    /**
     * The default timeouts. They are half a minute for a header, 1 KiB a second for a body after ten seconds, ten
     * seconds for a handshake, and a minute for an unread response. Idle connections are kept longer than load
     * balancers and pools of clients keep them.
     */
    public static final HttpTimeouts DEFAULT = new HttpTimeouts(
            Duration.ofSeconds(30),
            1024,
            Duration.ofSeconds(10),
            Duration.ofSeconds(620),
            Duration.ofSeconds(10),
            Duration.ofSeconds(60));

    public HttpTimeouts {
        check("header", header);
        check("bodyGrace", bodyGrace);
        check("idle", idle);
        check("tlsHandshake", tlsHandshake);
        check("responseStall", responseStall);
        if (minBodyBytesPerSecond < 0) {
            throw new IllegalArgumentException(
                    "minBodyBytesPerSecond: " + minBodyBytesPerSecond + " (expected: 0 or more)");
        }
    }

    private static void check(String name, Duration time) {
        if (requireNonNull(time, name).isNegative()) {
            throw new IllegalArgumentException(name + ": " + time + " (expected: zero or more)");
        }
    }

    /**
     * Returns the same timeouts with another one for headers.
     *
     * @param header how long a header may take
     */
    public HttpTimeouts withHeader(Duration header) {
        return new HttpTimeouts(header, minBodyBytesPerSecond, bodyGrace, idle, tlsHandshake, responseStall);
    }

    /**
     * Returns the same timeouts with another minimum rate of bodies.
     *
     * @param bytesPerSecond the minimum rate of a body
     * @param grace the period over which the rate is measured
     */
    public HttpTimeouts withBodyRate(long bytesPerSecond, Duration grace) {
        return new HttpTimeouts(header, bytesPerSecond, grace, idle, tlsHandshake, responseStall);
    }

    /**
     * Returns the same timeouts with another one for idle connections.
     *
     * @param idle how long a connection may have no request
     */
    public HttpTimeouts withIdle(Duration idle) {
        return new HttpTimeouts(header, minBodyBytesPerSecond, bodyGrace, idle, tlsHandshake, responseStall);
    }

    /**
     * Returns the same timeouts with another one for handshakes.
     *
     * @param tlsHandshake how long a handshake may take
     */
    public HttpTimeouts withTlsHandshake(Duration tlsHandshake) {
        return new HttpTimeouts(header, minBodyBytesPerSecond, bodyGrace, idle, tlsHandshake, responseStall);
    }

    /**
     * Returns the same timeouts with another one for unread responses.
     *
     * @param responseStall how long a response may wait for a client that does not read
     */
    public HttpTimeouts withResponseStall(Duration responseStall) {
        return new HttpTimeouts(header, minBodyBytesPerSecond, bodyGrace, idle, tlsHandshake, responseStall);
    }
}
