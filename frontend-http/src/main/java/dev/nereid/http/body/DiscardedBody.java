package dev.nereid.http.body;

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
 * Discards the rest of a request body after the response was written. Confined to one event loop.
 *
 * <p>The rest is read up to a limit: a connection that is closed while data arrives is reset, and its client may never
 * see the response.
 */
public final class DiscardedBody {
    /**
     * The minimum of bytes read beyond the limit. A client slightly beyond it therefore keeps the connection if it
     * declared the length of the body; without a length the end may lie beyond the bytes read.
     */
    private static final long MIN_EXCESS = 16 << 20;

    /** The maximum that is read beyond the limit; below it, half of the limit, as text is longer than its numbers. */
    private static final long MAX_EXCESS = 64 << 20;

    /** The bytes read of JSON, which has a lower limit than tensors; fewer if the limit of requests is lower still. */
    private static final long MIN_TEXT = 128 << 20;

    /** How long a client may send nothing. It may wait for the connection to be closed. */
    private static final long CLOSE_TIMEOUT_MILLIS = TimeUnit.SECONDS.toMillis(5);

    private final HttpServerRequest request;
    private final long maxBytes;
    private long read;
    private long readBefore;
    private boolean isOver;

    private DiscardedBody(HttpServerRequest request, long maxBytes) {
        this.request = request;
        this.maxBytes = maxBytes;
    }

    /**
     * Announces in the header of the response that the connection will be closed. Sets {@code Connection: close} if the
     * rest of the body is too long, or its length unknown. To be called before the response is written.
     */
    public static void announceClose(HttpServerRequest request, BodyLimits limits) {
        announceClose(request, maxDiscardedBytes(request, limits));
    }

    private static void announceClose(HttpServerRequest request, long maxBytes) {
        HttpServerResponse response = request.response();
        if (!request.isEnded()
                && !response.headWritten()
                && (expectsContinue(request) || !isSmall(request, maxBytes))) {
            response.putHeader(HttpHeaders.CONNECTION, HttpHeaders.CLOSE);
        }
    }

    /**
     * Discards the rest, up to a limit. Closes the connection if that was announced, once both the body has ended and
     * the response was written.
     */
    public static void discard(HttpServerRequest request, BodyLimits limits) {
        discard(request, maxDiscardedBytes(request, limits));
    }

    /**
     * Responds to a request without access to its resource. Whatever length its headers declare, no more of its body is
     * read than {@link #maxUnauthorizedBytes}: no access check has allowed the client to send tensors.
     */
    public static void respondAndDiscard(HttpServerRequest request, BodyLimits limits, Runnable sendResponse) {
        announceClose(request, maxUnauthorizedBytes(request, limits));
        sendResponse.run();
        discard(request, maxUnauthorizedBytes(request, limits));
    }

    /** Discards little of the rest, after a response that announced the end of the connection. */
    public static void discard(HttpServerRequest request) {
        discard(request, MIN_EXCESS);
    }

    private static void discard(HttpServerRequest request, long maxBytes) {
        if (!request.isEnded()) {
            new DiscardedBody(request, maxBytes).start();
        }
    }

    /** Returns how much is read of a body that no handler reads. */
    private static long maxUnauthorizedBytes(HttpServerRequest request, BodyLimits limits) {
        return Math.min(maxDiscardedBytes(request, limits), MIN_TEXT + MIN_EXCESS);
    }

    private static long maxDiscardedBytes(HttpServerRequest request, BodyLimits limits) {
        long limit = limits.maxRequestBytes();
        if (!RequestBodyHeaders.isBinary(request)) {
            limit = Math.max(limits.maxJsonBytes(), Math.min(limit, MIN_TEXT));
        }
        long excess = Math.clamp(limit / 2, MIN_EXCESS, MAX_EXCESS);
        return Math.min(limit, Long.MAX_VALUE - excess) + excess;
    }

    /** Responds with an error, whatever the body. */
    public static void refuse(
            HttpServerRequest request, InferenceException error, CharSequence contentType, BodyLimits limits) {
        announceClose(request, limits);
        HttpErrors.send(request.response(), error, contentType);
        discard(request, limits);
    }

    /** Sends {@code 100 Continue} if the client waits for it. */
    public static void sendContinue(HttpServerRequest request) {
        if (expectsContinue(request)) {
            request.response().writeContinue();
        }
    }

    /**
     * Responds to a request with a body that does not matter. A small body may come, also from a client that expects
     * {@code 100 Continue}.
     */
    public static void continueOrAnnounceClose(HttpServerRequest request, BodyLimits limits, Runnable sendResponse) {
        long maxBytes = maxUnauthorizedBytes(request, limits);
        if (expectsContinue(request) && isSmall(request, maxBytes)) {
            request.response().writeContinue();
        } else {
            announceClose(request, maxBytes);
        }
        sendResponse.run();
        discard(request, maxBytes);
    }

    /** Returns whether a client waits for {@code 100 Continue}. */
    private static boolean expectsContinue(HttpServerRequest request) {
        return "100-continue".equalsIgnoreCase(request.getHeader(HttpHeaders.EXPECT))
                && request.version() != HttpVersion.HTTP_1_0;
    }

    private void start() {
        request.exceptionHandler(lost -> isOver = true);
        request.handler(this::read);
        if (request.response().headers().contains(HttpHeaders.CONNECTION, HttpHeaders.CLOSE, true)) {
            request.endHandler(end -> close());
            scheduleIdleCheck(requireNonNull(Vertx.currentContext(), "context").owner());
        }
    }

    /** Closes the connection when its client sends nothing; slow clients run into a timeout. */
    private void scheduleIdleCheck(Vertx vertx) {
        vertx.setTimer(CLOSE_TIMEOUT_MILLIS, later -> {
            if (isOver) {
                return;
            }
            if (read == readBefore) {
                close();
            } else {
                readBefore = read;
                scheduleIdleCheck(vertx);
            }
        });
    }

    private void read(Buffer chunk) {
        read += chunk.length();
        if (read > maxBytes) {
            close();
        }
    }

    private void close() {
        isOver = true;
        HttpServerResponse response = request.response();
        if (response.ended() || response.closed()) {
            request.connection().close();
        } else {
            response.endHandler(written -> request.connection().close());
        }
    }

    private static boolean isSmall(HttpServerRequest request, long maxBytes) {
        String length = request.getHeader(HttpHeaders.CONTENT_LENGTH);
        if (length == null) { // without chunks there is no body
            return request.getHeader(HttpHeaders.TRANSFER_ENCODING) == null;
        }
        try {
            return Long.parseLong(length) <= maxBytes;
        } catch (NumberFormatException e) {
            return false;
        }
    }
}
