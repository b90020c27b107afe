package dev.nereid.distribution.metrics;

import io.vertx.core.http.HttpServerResponse;
import java.net.HttpURLConnection;

/** Writes the error responses of the metrics port. Immutable. */
final class MetricsErrors {
    private MetricsErrors() {}

    /** Sends status 405: the path does not support the request's method. */
    static void sendMethodNotAllowed(HttpServerResponse response) {
        response.setStatusCode(HttpURLConnection.HTTP_BAD_METHOD)
                .putHeader("content-type", "text/plain")
                .end("{\"error\":\"Method Not Allowed\"}");
    }

    /** Sends status 500: the metrics could not be collected. */
    static void sendInternal(HttpServerResponse response) {
        response.setStatusCode(HttpURLConnection.HTTP_INTERNAL_ERROR).end();
    }
}
