package dev.nereid.grpc.connection;

import io.netty.handler.codec.http2.Http2Connection;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2Stream;
import java.util.function.LongSupplier;
import java.util.function.Predicate;

/** Counts one connection's calls without a request. Confined to the event loop of the connection. */
final class IncompleteCalls {
    /** The minimum age of a stale call without a request. It is stale after twice this time at the latest. */
    private static final long STALE_NANOS = 3_000_000_000L;

    private final Http2Connection connection;
    private final ArrivingMessages messages;
    private final LongSupplier nanoTime;

    // The newest stream at the last recording, and at the one before: streams up to that one are stale.
    private int newest;
    private int stale;
    private long recordedAt;

    IncompleteCalls(Http2Connection connection, ArrivingMessages messages, LongSupplier nanoTime) {
        this.connection = connection;
        this.messages = messages;
        this.nanoTime = nanoTime;
        this.recordedAt = nanoTime.getAsLong();
    }

    /** Returns the number of open calls without a request of the client. */
    int incomplete() {
        return count(this::isIncomplete);
    }

    /** Returns the number of calls among {@link #incomplete} that have been open for seconds. */
    int stale() {
        return stale == 0 ? 0 : count(stream -> stream.id() <= stale && isIncomplete(stream));
    }

    /** Returns whether the server waits for the client. Streaming calls with a request may stay open without limit. */
    private boolean isIncomplete(Http2Stream stream) {
        return switch (stream.state()) {
            case OPEN -> !stream.isHeadersSent() && messages.isWaitingForRequest(stream);
            case HALF_CLOSED_LOCAL -> true;
            default -> false;
        };
    }

    /** Records the newest stream periodically, to find stale calls by their stream numbers. */
    void recordNewestStream() {
        long now = nanoTime.getAsLong();
        if (now - recordedAt >= STALE_NANOS) {
            stale = newest;
            newest = connection.remote().lastStreamCreated();
            recordedAt = now;
        }
    }

    /** Returns the number of open streams that match. */
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
            throw new IllegalStateException("a visitor threw although it throws nothing", e);
        }
        return count[0];
    }
}
