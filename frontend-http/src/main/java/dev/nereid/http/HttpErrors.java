package dev.nereid.http;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import java.net.HttpURLConnection;
import org.jspecify.annotations.Nullable;

/** How errors look over HTTP: a status, and one line of JSON. Immutable. */
final class HttpErrors {
    static final CharSequence JSON = HttpHeaders.createOptimized("application/json");
    static final CharSequence TEXT = HttpHeaders.createOptimized("text/plain");

    private HttpErrors() {}

    /** Answers with an error that a handler of the protocol found. */
    static void send(HttpServerResponse response, InferenceException error, CharSequence contentType) {
        send(response, status(error.code()), error.publicMessage(), contentType);
    }

    /** Answers that there is nothing at the request's path. */
    static void sendNotFound(HttpServerResponse response) {
        send(response, HttpURLConnection.HTTP_NOT_FOUND, "Not Found", TEXT);
    }

    /** Answers that the request's path cannot be asked with its method. */
    static void sendMethodNotAllowed(HttpServerResponse response, CharSequence contentType) {
        send(response, HttpURLConnection.HTTP_BAD_METHOD, "Method Not Allowed", contentType);
    }

    /** Answers that a part of the protocol is not for everybody. */
    static void sendRestricted(HttpServerResponse response, String header) {
        send(
                response,
                HttpURLConnection.HTTP_FORBIDDEN,
                "This API is restricted, expecting header '" + header + "'",
                TEXT);
    }

    /** Answers that the server has begun to stop. */
    static void sendExiting(HttpServerResponse response) {
        send(response, HttpURLConnection.HTTP_UNAVAILABLE, "Server exiting", TEXT);
    }

    /** Answers that a request breaks the rules of HTTP. */
    static void sendBadRequest(HttpServerResponse response, @Nullable Throwable problem) {
        String message = problem == null ? null : problem.getMessage();
        send(response, HttpURLConnection.HTTP_BAD_REQUEST, message == null ? "Bad Request" : message, TEXT);
    }

    /** Answers that the server failed; what happened is for the log alone. */
    static void sendInternal(HttpServerResponse response) {
        send(response, HttpURLConnection.HTTP_INTERNAL_ERROR, "internal error", JSON);
    }

    /** Has an answer that is not made here tell of an error by its status. */
    static void setStatus(HttpServerResponse response, ErrorCode code) {
        response.setStatusCode(status(code));
    }

    private static int status(ErrorCode code) {
        return switch (code) {
            case INTERNAL -> HttpURLConnection.HTTP_INTERNAL_ERROR;
            case NOT_FOUND -> HttpURLConnection.HTTP_NOT_FOUND;
            case UNAVAILABLE -> HttpURLConnection.HTTP_UNAVAILABLE;
            case UNSUPPORTED -> HttpURLConnection.HTTP_NOT_IMPLEMENTED;
            case UNKNOWN, INVALID_ARGUMENT, ALREADY_EXISTS, CANCELLED -> HttpURLConnection.HTTP_BAD_REQUEST;
        };
    }

    /** Answers whether something is well, by the status alone. */
    static void sendHealth(HttpServerResponse response, boolean good) {
        response.setStatusCode(good ? HttpURLConnection.HTTP_OK : HttpURLConnection.HTTP_BAD_REQUEST)
                .putHeader(HttpHeaders.CONTENT_TYPE, TEXT)
                .end();
    }

    private static void send(HttpServerResponse response, int status, String message, CharSequence contentType) {
        if (response.ended() || response.closed()) {
            return;
        }
        response.setStatusCode(status).putHeader(HttpHeaders.CONTENT_TYPE, contentType);
        response.end(body(message));
    }

    /** Returns the body that tells of an error. */
    static Buffer body(String message) {
        JsonWriter json = new JsonWriter();
        json.raw("{\"error\":").string(message).raw("}");
        return Buffer.buffer(json.toByteArray());
    }
}
