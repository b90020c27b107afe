package dev.nereid.distribution;

import io.vertx.core.http.HttpServerResponse;
import java.net.HttpURLConnection;

/** How the metrics port says that something is wrong. Immutable. */
final class MetricsErrors {
    private MetricsErrors() {}

    /** Answers that the path cannot be asked with the request's method. */
    static void sendMethodNotAllowed(HttpServerResponse response) {
        response.setStatusCode(HttpURLConnection.HTTP_BAD_METHOD)
                .putHeader("content-type", "text/plain")
                .end("{\"error\":\"Method Not Allowed\"}");
    }

    /** Answers that the metrics could not be gathered. */
    static void sendInternal(HttpServerResponse response) {
        response.setStatusCode(HttpURLConnection.HTTP_INTERNAL_ERROR).end();
    }
}
