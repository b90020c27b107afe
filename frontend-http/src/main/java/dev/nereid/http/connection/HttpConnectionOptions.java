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
    /** Checks the components. */
    public HttpConnectionOptions {
        requireNonNull(limiter, "limiter");
        requireNonNull(timeouts, "timeouts");
        requireNonNull(closeTimeout, "closeTimeout");
        if (requireNonNull(drainWindow, "drainWindow").isNegative()) {
            throw new IllegalArgumentException("drainWindow: " + drainWindow + " (expected: zero or more)");
        }
    }

    /**
     * Returns options with any number of connections. They have the default timeouts, no drain window, and half a
     * minute to close.
     *
     * @return new options, with a new limiter
     */
    public static HttpConnectionOptions unlimited() {
        return new HttpConnectionOptions(
                ConnectionLimiter.unlimited(), HttpTimeouts.DEFAULT, Duration.ZERO, Duration.ofSeconds(30));
    }

    /**
     * Returns the same options with another limiter.
     *
     * @param limiter limits the number of connections
     * @return the changed options
     */
    public HttpConnectionOptions withLimiter(ConnectionLimiter limiter) {
        return new HttpConnectionOptions(limiter, timeouts, drainWindow, closeTimeout);
    }

    /**
     * Returns the same options with other timeouts.
     *
     * @return the changed options
     */
    public HttpConnectionOptions withTimeouts(HttpTimeouts timeouts) {
        return new HttpConnectionOptions(limiter, timeouts, drainWindow, closeTimeout);
    }

    /**
     * Returns the same options with another drain window.
     *
     * @param drainWindow how long a closing port serves requests
     * @return the changed options
     */
    public HttpConnectionOptions withDrainWindow(Duration drainWindow) {
        return new HttpConnectionOptions(limiter, timeouts, drainWindow, closeTimeout);
    }

    /**
     * Returns the same options with another close timeout.
     *
     * @param closeTimeout how long closing waits for requests in flight
     * @return the changed options
     */
    public HttpConnectionOptions withCloseTimeout(Duration closeTimeout) {
        return new HttpConnectionOptions(limiter, timeouts, drainWindow, closeTimeout);
    }
}
