package dev.nereid.grpc.connection;

import io.netty.handler.codec.http2.Http2Connection;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2Stream;
import java.util.function.LongSupplier;
import java.util.function.Predicate;

/** Counts one connection's calls without a request. Confined to the event loop of the connection. */
final class IncompleteCalls {
    /** For how long a call is open at least, and for twice as long at most, before it counts as stale without a request. */
    private static final long STALE_NANOS = 3_000_000_000L;

    private final Http2Connection connection;
    private final ArrivingMessages messages;
    private final LongSupplier nanoTime;

    // The newest stream when that was noted last, and when it was noted before: it has been there for a while.
    private int newest;
    private int stale;
    private long notedAt;

    IncompleteCalls(Http2Connection connection, ArrivingMessages messages, LongSupplier nanoTime) {
        this.connection = connection;
        this.messages = messages;
        this.nanoTime = nanoTime;
        this.notedAt = nanoTime.getAsLong();
    }

    /** Returns how many calls are open of which the client has not sent a request. */
    int incomplete() {
        return count(this::isIncomplete);
    }

    /** Returns how many calls among {@link #incomplete} have been open for seconds. */
    int stale() {
        return stale == 0 ? 0 : count(stream -> stream.id() <= stale && isIncomplete(stream));
    }

    /** Says whether the server waits for the client. Streams of many requests may be open for good once one has come. */
    private boolean isIncomplete(Http2Stream stream) {
        return switch (stream.state()) {
            case OPEN -> !stream.isHeadersSent() && messages.isWaitingForRequest(stream);
            case HALF_CLOSED_LOCAL -> true;
            default -> false;
        };
    }

    /** Takes note of the newest stream from time to time, so that it is known which are old. */
    void noteNewestStream() {
        long now = nanoTime.getAsLong();
        if (now - notedAt >= STALE_NANOS) {
            stale = newest;
            newest = connection.remote().lastStreamCreated();
            notedAt = now;
        }
    }

    /** Returns how many open streams match. */
    int count(Predicate<Http2Stream> streams) {
        int[] count = new int[1];
        try {
            connection.forEachActiveStream(stream -> {
                if (streams.test(stream)) {
                    count[0]++;
                }
                return true;
            });
        } catch (Http2Exception e) {
            throw new IllegalStateException("a visitor that throws nothing threw", e);
        }
        return count[0];
    }
}
