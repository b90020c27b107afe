package dev.nereid.distribution.client;

import java.net.URI;
import java.time.Duration;
import java.util.Map;

/**
 * Options of requests to a server. Immutable.
 *
 * @param url the server's address, without a slash at the end
 * @param timeout the maximum duration of a request
 */
public record ClientOptions(URI url, Map<String, String> headers, Duration timeout) {
    public ClientOptions {
        headers = Map.copyOf(headers);
    }
}
