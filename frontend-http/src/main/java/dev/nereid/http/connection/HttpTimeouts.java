package dev.nereid.http.connection;

import static java.util.Objects.requireNonNull;

import java.time.Duration;

/**
 * Timeouts of HTTP connections. Immutable; zero switches a bound off.
 *
 * @param header how long the header of a request may take from its first byte, and the first byte of the first request
 *     from the connection on
 * @param minBodyBytesPerSecond how fast a body must arrive while the server reads it
 * @param bodyGrace how long a body is measured before it is judged, again and again
 * @param idle how long a connection may have no request between two
 * @param tlsHandshake how long the handshake of an encrypted connection may take
 * @param responseStall how long responses may wait for a client that reads nothing of them
 */
public record HttpTimeouts(
        Duration header,
        long minBodyBytesPerSecond,
        Duration bodyGrace,
        Duration idle,
        Duration tlsHandshake,
        Duration responseStall) {
    /**
     * Half a minute for a header, 1 KiB a second for a body after ten seconds, ten seconds for a handshake, a minute for
     * an unread response. Idle connections are kept longer than load balancers and pools of clients keep them.
     */
    public static final HttpTimeouts DEFAULT = new HttpTimeouts(
            Duration.ofSeconds(30),
            1024,
            Duration.ofSeconds(10),
            Duration.ofSeconds(620),
            Duration.ofSeconds(10),
            Duration.ofSeconds(60));

    /** Checks the components. */
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
     * Returns the same time-outs with another one for headers.
     *
     * @param changed how long a header may take
     * @return the changed time-outs
     */
    public HttpTimeouts withHeader(Duration changed) {
        return new HttpTimeouts(changed, minBodyBytesPerSecond, bodyGrace, idle, tlsHandshake, responseStall);
    }

    /**
     * Returns the same time-outs with another least rate of bodies.
     *
     * @param bytesPerSecond how fast a body must arrive
     * @param grace how long it is measured before it is judged
     * @return the changed time-outs
     */
    public HttpTimeouts withBodyRate(long bytesPerSecond, Duration grace) {
        return new HttpTimeouts(header, bytesPerSecond, grace, idle, tlsHandshake, responseStall);
    }

    /**
     * Returns the same time-outs with another one for idle connections.
     *
     * @param changed how long a connection may have no request
     * @return the changed time-outs
     */
    public HttpTimeouts withIdle(Duration changed) {
        return new HttpTimeouts(header, minBodyBytesPerSecond, bodyGrace, changed, tlsHandshake, responseStall);
    }

    /**
     * Returns the same time-outs with another one for handshakes.
     *
     * @param changed how long a handshake may take
     * @return the changed time-outs
     */
    public HttpTimeouts withTlsHandshake(Duration changed) {
        return new HttpTimeouts(header, minBodyBytesPerSecond, bodyGrace, idle, changed, responseStall);
    }

    /**
     * Returns the same time-outs with another one for unread responses.
     *
     * @param changed how long a response may wait for a client that does not read
     * @return the changed time-outs
     */
    public HttpTimeouts withResponseStall(Duration changed) {
        return new HttpTimeouts(header, minBodyBytesPerSecond, bodyGrace, idle, tlsHandshake, changed);
    }
}
