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
}
