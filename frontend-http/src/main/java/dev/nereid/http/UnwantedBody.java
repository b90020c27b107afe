package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.core.http.HttpVersion;
import java.util.concurrent.TimeUnit;

/**
 * The body of a request that was answered before all of it came. Confined to one event loop.
 *
 * <p>It is read for a while and thrown away: a connection that is closed while data comes is reset, and its client may
 * never see the answer.
 */
final class UnwantedBody {
    /** Twice the largest JSON text by default: who missed the limit by a little keeps the connection. */
    private static final long MOST_READ = 128 << 20;

    /** How long a client may take to notice that the connection is to be closed. */
    private static final long PATIENCE_MILLIS = TimeUnit.SECONDS.toMillis(5);

    private final HttpServerRequest request;
    private long read;

    private UnwantedBody(HttpServerRequest request) {
        this.request = request;
    }

    /**
     * Announces in the head of the answer that the connection will be closed, if too much is to come, or nobody knows
     * how much. To be called before the answer is written.
     */
    static void announceClose(HttpServerRequest request) {
        HttpServerResponse response = request.response();
        if (!request.isEnded() && !response.headWritten() && (isWaiting(request) || !isSmall(request))) {
            response.putHeader(HttpHeaders.CONNECTION, HttpHeaders.CLOSE);
        }
    }

    /**
     * Reads the rest, up to a point, and closes the connection if that was announced, once both the body has ended and
     * the response was written.
     */
    static void discard(HttpServerRequest request) {
        if (!request.isEnded()) {
            new UnwantedBody(request).start();
        }
    }

    /** Answers a request with an error, whatever its body. */
    static void refuse(HttpServerRequest request, InferenceException error, CharSequence contentType) {
        announceClose(request);
        HttpErrors.send(request.response(), error, contentType);
        discard(request);
    }

    /** Has the client send a body that is to be read, if it waits to be told. */
    static void invite(HttpServerRequest request) {
        if (isWaiting(request)) {
            request.response().writeContinue();
        }
    }

    /** Prepares for the answer to a request whose body does not matter: a small one may come. */
    static void allow(HttpServerRequest request) {
        if (isWaiting(request) && isSmall(request)) {
            request.response().writeContinue();
        } else {
            announceClose(request);
        }
    }

    /** Says whether a client waits to be told to send the body. */
    private static boolean isWaiting(HttpServerRequest request) {
        return "100-continue".equalsIgnoreCase(request.getHeader(HttpHeaders.EXPECT))
                && request.version() != HttpVersion.HTTP_1_0;
    }

    private void start() {
        request.exceptionHandler(lost -> {});
        request.handler(this::read);
        if (request.response().headers().contains(HttpHeaders.CONNECTION, HttpHeaders.CLOSE, true)) {
            request.endHandler(end -> close());
            requireNonNull(Vertx.currentContext(), "context").owner().setTimer(PATIENCE_MILLIS, late -> close());
        }
    }

    private void read(Buffer chunk) {
        read += chunk.length();
        if (read > MOST_READ) {
            close();
        }
    }

    private void close() {
        HttpServerResponse response = request.response();
        if (response.ended() || response.closed()) {
            request.connection().close();
        } else {
            response.endHandler(written -> request.connection().close());
        }
    }

    private static boolean isSmall(HttpServerRequest request) {
        String length = request.getHeader(HttpHeaders.CONTENT_LENGTH);
        if (length == null) { // without chunks there is no body at all
            return request.getHeader(HttpHeaders.TRANSFER_ENCODING) == null;
        }
        try {
            return Long.parseLong(length) <= MOST_READ;
        } catch (NumberFormatException e) {
            return false;
        }
    }
}
