package dev.nereid.http.connection;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.frontend.ConnectionLimiter;
import java.time.Duration;

/**
 * Connection options of a port: limit, timeouts and drain window. Immutable, but for what the limiter counts.
 *
 * @param limiter bounds their number; may be shared with other ports
 * @param timeouts bounds their time
 * @param drainWindow how long a port that closes goes on to answer, and announces with each response that the
 *     connection will be closed
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
     * Any number of connections, the default time-outs, no drain window, and half a minute to close.
     *
     * @return new bounds, with a limiter of their own
     */
    public static HttpConnectionOptions unlimited() {
        return new HttpConnectionOptions(
                ConnectionLimiter.unlimited(), HttpTimeouts.DEFAULT, Duration.ZERO, Duration.ofSeconds(30));
    }

    /**
     * Returns the same bounds with another limiter.
     *
     * @param changed bounds the number of connections
     * @return the changed bounds
     */
    public HttpConnectionOptions withLimiter(ConnectionLimiter changed) {
        return new HttpConnectionOptions(changed, timeouts, drainWindow, closeTimeout);
    }

    /**
     * Returns the same bounds with other time-outs.
     *
     * @param changed bounds the time of connections
     * @return the changed bounds
     */
    public HttpConnectionOptions withTimeouts(HttpTimeouts changed) {
        return new HttpConnectionOptions(limiter, changed, drainWindow, closeTimeout);
    }

    /**
     * Returns the same bounds with another drain window.
     *
     * @param changed how long a port that closes goes on to answer
     * @return the changed bounds
     */
    public HttpConnectionOptions withDrainWindow(Duration changed) {
        return new HttpConnectionOptions(limiter, timeouts, changed, closeTimeout);
    }

    /**
     * Returns the same bounds with another time to close.
     *
     * @param changed how long closing waits for requests in flight
     * @return the changed bounds
     */
    public HttpConnectionOptions withCloseTimeout(Duration changed) {
        return new HttpConnectionOptions(limiter, timeouts, drainWindow, changed);
    }
}
