package dev.nereid.http.connection;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.frontend.ConnectionLimiter;
import java.time.Duration;

/**
 * Connection options of a port: limit, timeouts and drain window. Immutable, but for what the limiter counts.
 *
 * @param limiter limits the number of connections; may be shared with other ports
 * @param drainWindow how long a closing port serves requests and announces with each response that the connection will
 *     be closed
 * @param closeTimeout how long closing waits for requests in flight
 */
public record HttpConnectionOptions(
        ConnectionLimiter limiter, HttpTimeouts timeouts, Duration drainWindow, Duration closeTimeout) {
    public HttpConnectionOptions {
        requireNonNull(limiter, "limiter");
        requireNonNull(timeouts, "timeouts");
        requireNonNull(closeTimeout, "closeTimeout");
        if (requireNonNull(drainWindow, "drainWindow").isNegative()) {
            throw new IllegalArgumentException("drainWindow: " + drainWindow + " (expected: zero or more)");
        }
    }
}
