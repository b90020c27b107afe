package dev.nereid.http.body;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.http.json.JsonWriter;
import dev.nereid.spi.ErrorCode;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.handler.codec.http.TooLongHttpHeaderException;
import io.netty.handler.codec.http.TooLongHttpLineException;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpConnection;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.core.net.impl.ConnectionBase;
import java.net.HttpURLConnection;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** Maps errors to HTTP status codes and JSON error bodies. Immutable. */
public final class HttpErrors {
    /** RFC 6585. */
    private static final int HEADERS_TOO_LARGE = 431;

    /** The maximum length of an error's text in a response. Messages of backends have any length. */
    private static final int MAX_MESSAGE_LENGTH = 64 << 10;

    /** Begins the error of malformed HTTP. */
    public static final String NO_REQUEST = "this is no request of HTTP/1.1";

    private HttpErrors() {}

    public static void send(HttpServerResponse response, InferenceException error, CharSequence contentType) {
        if (!response.headWritten()) {
            setRetryAfter(response, error);
        }
        send(response, status(error.code()), error.publicMessage(), contentType);
    }

    /** Responds that the path does not exist. */
    public static void sendNotFound(HttpServerResponse response) {
        send(response, HttpURLConnection.HTTP_NOT_FOUND, "Not Found", ContentTypes.TEXT);
    }

    /** Responds that the path does not support the method. */
    public static void sendMethodNotAllowed(HttpServerResponse response, CharSequence contentType) {
        send(response, HttpURLConnection.HTTP_BAD_METHOD, "Method Not Allowed", contentType);
    }

    /** Responds that a protocol group is restricted. */
    public static void sendRestricted(HttpServerResponse response, String header) {
        send(
                response,
                HttpURLConnection.HTTP_FORBIDDEN,
                "This API is restricted, expecting header '" + header + "'",
                ContentTypes.TEXT);
    }

    /** Responds that the server is shutting down. */
    public static void sendExiting(HttpServerResponse response) {
        send(response, HttpURLConnection.HTTP_UNAVAILABLE, "Server exiting", ContentTypes.TEXT);
    }

    /** Responds that a request is malformed HTTP, and that the connection will be closed. */
    public static void sendInvalid(
            HttpServerResponse response, @Nullable Throwable problem, @Nullable String contentLength) {
        response.putHeader(HttpHeaders.CONNECTION, HttpHeaders.CLOSE);
        switch (problem) {
            case TooLongHttpLineException _ ->
                send(
                        response,
                        HttpURLConnection.HTTP_REQ_TOO_LONG,
                        "request line: too long (expected: at most " + RequestLimits.MAX_REQUEST_LINE_BYTES + " bytes)",
                        ContentTypes.TEXT);
            case TooLongHttpHeaderException _ ->
                send(
                        response,
                        HEADERS_TOO_LARGE,
                        "headers: too large (expected: at most " + RequestLimits.MAX_HEADER_BYTES + " bytes)",
                        ContentTypes.TEXT);
            case InvalidRequestLineException line ->
                send(response, line.status(), NO_REQUEST + ": " + line.getMessage(), ContentTypes.TEXT);
            case null, default ->
                send(
                        response,
                        HttpURLConnection.HTTP_BAD_REQUEST,
                        contentLength == null || isLength(contentLength)
                                ? NO_REQUEST
                                        + (problem == null
                                                ? ""
                                                : ": " + Quoted.text(String.valueOf(problem.getMessage())))
                                : "Unable to parse Content-Length, got: " + Quoted.text(contentLength),
                        ContentTypes.TEXT);
        }
    }

    /** Returns a complete response that closes the connection. */
    public static ByteBuf lastResponse(int status, String phrase, String error) {
        byte[] body = body(error).getBytes();
        String header = "HTTP/1.1 " + status + " " + phrase + "\r\ncontent-type: text/plain\r\nconnection: close\r\n"
                + "content-length: " + body.length + "\r\n\r\n";
        return Unpooled.wrappedBuffer(header.getBytes(StandardCharsets.US_ASCII), body);
    }

    /** Responds with an internal error; the cause is only logged. */
    public static void sendInternal(HttpServerResponse response) {
        send(response, HttpURLConnection.HTTP_INTERNAL_ERROR, "internal error", ContentTypes.JSON);
    }

    /** Responds with an internal error, or closes the connection if a response has begun. */
    public static void sendInternal(HttpServerRequest request) {
        sendOrAbort(request, () -> sendInternal(request.response()));
    }

    /** Sends a response after a failure. Closes the connection if another response has begun, or if sending fails. */
    public static void sendOrAbort(HttpServerRequest request, Runnable sending) {
        HttpServerResponse response = request.response();
        boolean isSent = false;
        try {
            if (!response.headWritten()) {
                sending.run();
                isSent = true;
            }
        } finally {
            if (!isSent && !response.closed()) {
                abort(request.connection());
            }
        }
    }

    /** Closes a connection at once; pending responses are lost. */
    public static void abort(HttpConnection connection) {
        Channel channel = ((ConnectionBase) connection).channel();
        channel.unsafe().close(channel.voidPromise());
    }

    /** Sets status and {@code Retry-After} of a response; the caller writes the body. */
    public static void setStatus(HttpServerResponse response, InferenceException error) {
        setRetryAfter(response, error);
        response.setStatusCode(status(error.code()));
    }

    /** Sets {@code Retry-After}, in whole seconds, if the error has a delay. */
    private static void setRetryAfter(HttpServerResponse response, InferenceException error) {
        error.retryAfter()
                .ifPresent(pause -> response.putHeader(
                        HttpHeaders.RETRY_AFTER, Long.toString(Math.max(1, Math.ceilDiv(pause.toMillis(), 1_000)))));
    }

    static int status(ErrorCode code) {
        return switch (code) {
            case INTERNAL -> HttpURLConnection.HTTP_INTERNAL_ERROR;
            case NOT_FOUND -> HttpURLConnection.HTTP_NOT_FOUND;
            case UNAVAILABLE -> HttpURLConnection.HTTP_UNAVAILABLE;
            case UNSUPPORTED -> HttpURLConnection.HTTP_NOT_IMPLEMENTED;
            case UNKNOWN, INVALID_ARGUMENT, ALREADY_EXISTS, CANCELLED -> HttpURLConnection.HTTP_BAD_REQUEST;
        };
    }

    /** Responds with the status of a health check. */
    public static void sendHealth(HttpServerResponse response, boolean good) {
        response.setStatusCode(good ? HttpURLConnection.HTTP_OK : HttpURLConnection.HTTP_BAD_REQUEST)
                .putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.TEXT)
                .end();
    }

    private static void send(HttpServerResponse response, int status, String message, CharSequence contentType) {
        if (response.ended() || response.closed()) {
            return;
        }
        response.setStatusCode(status).putHeader(HttpHeaders.CONTENT_TYPE, contentType);
        response.end(body(message));
    }

    public static Buffer body(String message) {
        String text = message.length() <= MAX_MESSAGE_LENGTH ? message : message.substring(0, MAX_MESSAGE_LENGTH) + "…";
        JsonWriter json = new JsonWriter();
        json.raw("{\"error\":").string(text).raw("}");
        return Buffer.buffer(json.toByteArray());
    }

    private static boolean isLength(String text) {
        try {
            return Long.parseLong(text) >= 0;
        } catch (NumberFormatException e) {
            return false;
        }
    }
}
