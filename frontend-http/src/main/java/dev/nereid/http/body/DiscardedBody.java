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
 * Discards the rest of a request body whose response was already written. Confined to one event loop.
 *
 * <p>It is read for a while and thrown away: a connection that is closed while data comes is reset, and its client may
 * never see the answer.
 */
public final class DiscardedBody {
    /**
     * So much more than is accepted is read at least, so that a client that missed the limit keeps the connection, if
     * it announced the length of the body; without that nobody knows whether the end will be read.
     */
    private static final long MIN_EXCESS = 16 << 20;

    /** Up to here half of the limit is read beyond it: text takes more room than the numbers that it stands for. */
    private static final long MAX_EXCESS = 64 << 20;

    /** So much is read of text, which is bounded more than tensors are, unless no request may have as much. */
    private static final long MIN_TEXT = 128 << 20;

    /** How long a client may send nothing, since it may have noticed that the connection is to be closed. */
    private static final long CLOSE_TIMEOUT_MILLIS = TimeUnit.SECONDS.toMillis(5);

    private final HttpServerRequest request;
    private final long most;
    private long read;
    private long seen;
    private boolean isOver;

    private DiscardedBody(HttpServerRequest request, long most) {
        this.request = request;
        this.most = most;
    }

    /**
     * Announces in the head of the answer that the connection will be closed, if too much is to come, or nobody knows
     * how much. To be called before the answer is written.
     */
    public static void announceClose(HttpServerRequest request, BodyLimits limits) {
        announceClose(request, mostRead(request, limits));
    }

    private static void announceClose(HttpServerRequest request, long most) {
        HttpServerResponse response = request.response();
        if (!request.isEnded() && !response.headWritten() && (expectsContinue(request) || !isSmall(request, most))) {
            response.putHeader(HttpHeaders.CONNECTION, HttpHeaders.CLOSE);
        }
    }

    /**
     * Reads the rest, up to a point, and closes the connection if that was announced, once both the body has ended and
     * the response was written.
     */
    public static void discard(HttpServerRequest request, BodyLimits limits) {
        discard(request, mostRead(request, limits));
    }

    /**
     * Answers a request that may not have what it asks for. Whatever its headers say of its body, no more is read of it
     * than {@link #mostIgnored}: nobody has checked that the client may send tensors.
     */
    public static void turnAway(HttpServerRequest request, BodyLimits limits, Runnable answer) {
        announceClose(request, mostIgnored(request, limits));
        answer.run();
        discard(request, mostIgnored(request, limits));
    }

    /** Reads little of the rest, after an answer that announced the end of the connection. */
    public static void discard(HttpServerRequest request) {
        discard(request, MIN_EXCESS);
    }

    private static void discard(HttpServerRequest request, long most) {
        if (!request.isEnded()) {
            new DiscardedBody(request, most).start();
        }
    }

    /** Returns how much is read of a body that nobody would have read in any case. */
    private static long mostIgnored(HttpServerRequest request, BodyLimits limits) {
        return Math.min(mostRead(request, limits), MIN_TEXT + MIN_EXCESS);
    }

    private static long mostRead(HttpServerRequest request, BodyLimits limits) {
        long limit = limits.maxRequestBytes();
        if (!RequestBodyHeaders.isBinary(request)) {
            limit = Math.max(limits.maxJsonBytes(), Math.min(limit, MIN_TEXT));
        }
        long excess = Math.clamp(limit / 2, MIN_EXCESS, MAX_EXCESS);
        return Math.min(limit, Long.MAX_VALUE - excess) + excess;
    }

    /** Answers a request with an error, whatever its body. */
    public static void refuse(
            HttpServerRequest request, InferenceException error, CharSequence contentType, BodyLimits limits) {
        announceClose(request, limits);
        HttpErrors.send(request.response(), error, contentType);
        discard(request, limits);
    }

    /** Has the client send a body that is to be read, if it waits to be told. */
    public static void sendContinue(HttpServerRequest request) {
        if (expectsContinue(request)) {
            request.response().writeContinue();
        }
    }

    /** Answers a request whose body does not matter: a small one may come, also from a client that waits to be told. */
    public static void continueOrAnnounceClose(HttpServerRequest request, BodyLimits limits, Runnable answer) {
        long most = mostIgnored(request, limits);
        if (expectsContinue(request) && isSmall(request, most)) {
            request.response().writeContinue();
        } else {
            announceClose(request, most);
        }
        answer.run();
        discard(request, most);
    }

    /** Says whether a client waits to be told to send the body. */
    private static boolean expectsContinue(HttpServerRequest request) {
        return "100-continue".equalsIgnoreCase(request.getHeader(HttpHeaders.EXPECT))
                && request.version() != HttpVersion.HTTP_1_0;
    }

    private void start() {
        request.exceptionHandler(lost -> isOver = true);
        request.handler(this::read);
        if (request.response().headers().contains(HttpHeaders.CONNECTION, HttpHeaders.CLOSE, true)) {
            request.endHandler(end -> close());
            watch(requireNonNull(Vertx.currentContext(), "context").owner());
        }
    }

    /** Closes the connection when its client sends nothing; for those that are slow there is a time-out. */
    private void watch(Vertx vertx) {
        vertx.setTimer(CLOSE_TIMEOUT_MILLIS, later -> {
            if (isOver) {
                return;
            }
            if (read == seen) {
                close();
            } else {
                seen = read;
                watch(vertx);
            }
        });
    }

    private void read(Buffer chunk) {
        read += chunk.length();
        if (read > most) {
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

    private static boolean isSmall(HttpServerRequest request, long most) {
        String length = request.getHeader(HttpHeaders.CONTENT_LENGTH);
        if (length == null) { // without chunks there is no body at all
            return request.getHeader(HttpHeaders.TRANSFER_ENCODING) == null;
        }
        try {
            return Long.parseLong(length) <= most;
        } catch (NumberFormatException e) {
            return false;
        }
    }
}
