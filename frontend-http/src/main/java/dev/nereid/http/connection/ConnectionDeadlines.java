package dev.nereid.http.connection;

import java.time.Duration;

/**
 * Tracks the timeouts of one connection: header, body, idle and unread responses. Confined to one event loop.
 *
 * <p>Events cost the write of a field or two, with a time that may be as old as the last {@link #check}; so each bound is
 * applied with the time between two checks added. What the connection does follows from the events: a request is read
 * from its first byte to the end of its header, then to the end of its body; it is in progress until its response was
 * written. A connection without any of these is idle.
 */
final class ConnectionDeadlines {
    /** The action that a timeout check requires. */
    enum Verdict {
        /** It may go on. */
        CONTINUE,
        /** It has been idle for too long. */
        CLOSE,
        /** A part of a request has arrived, and its rest is late. */
        REQUEST_TIMEOUT,
        /** Its client reads nothing of the responses that wait for it. */
        ABORT
    }

    private final long headerNanos;
    private final long minBodyBytesPerSecond;
    private final long graceNanos;
    private final long idleNanos;
    private final long stallNanos;

    private long since;
    private boolean hasResponded;
    private boolean readsHeader;
    private boolean readsBody;
    private int inProgress;
    private long received;

    private long bodyNanos;
    private long receivedBefore;
    private long pendingState;
    private long stalledSince;

    /**
     * Begins with a new connection.
     *
     * @param timeouts the bounds
     * @param now the time, in nanoseconds from any origin
     */
    ConnectionDeadlines(HttpTimeouts timeouts, long now) {
        headerNanos = nanos(timeouts.header());
        minBodyBytesPerSecond = timeouts.minBodyBytesPerSecond();
        graceNanos = nanos(timeouts.bodyGrace());
        idleNanos = nanos(timeouts.idle());
        stallNanos = nanos(timeouts.responseStall());
        since = now;
    }

    private static long nanos(Duration time) {
        return time.isZero() ? Long.MAX_VALUE : time.toNanos();
    }

    /** Bytes have arrived. */
    void bytesArrived(int count, long now) {
        received += count;
        if (!readsHeader && !readsBody) {
            readsHeader = true;
            since = now;
        }
    }

    /** The header of a request is complete. */
    void headerRead() {
        readsHeader = false;
        readsBody = true;
        bodyNanos = 0;
        receivedBefore = received;
        inProgress++;
    }

    /**
     * A request is complete.
     *
     * @param hasMore whether bytes of the next one are there already
     */
    void requestRead(boolean hasMore, long now) {
        readsBody = false;
        readsHeader = hasMore;
        since = now;
    }

    /** A response is complete. */
    void responseWritten(long now) {
        inProgress--;
        hasResponded = true;
        since = now;
    }

    /** Says whether a request was answered. */
    boolean hasResponded() {
        return hasResponded;
    }

    /** Returns how many requests were read, at least their header, and are not answered. */
    int inProgress() {
        return inProgress;
    }

    /** Says whether the body of a request is being read. */
    boolean readsBody() {
        return readsBody;
    }

    /** Says whether its end loses no request that was read: it is idle, or reads the header of its first request. */
    boolean isEvictable() {
        return inProgress == 0 && !readsBody && !(readsHeader && hasResponded);
    }

    /** Returns when what the connection does began. */
    long since() {
        return since;
    }

    /**
     * Decides. To be called from time to time.
     *
     * @param now the time
     * @param elapsed how long the last check is ago
     * @param isReading whether the server reads what the client sends
     * @param waitingNow stands for how much of the responses waits to be sent: 0 if nothing does, another number than
     *     before if the client has read something
     * @return what is to become of the connection
     */
    Verdict check(long now, long elapsed, boolean isReading, long waitingNow) {
        if (waitingNow != 0 && isStalled(now, elapsed, waitingNow)) {
            return Verdict.ABORT;
        }
        pendingState = waitingNow;
        if (readsBody) {
            return inProgress <= 1 && isReading && isBodySlow(elapsed) ? Verdict.REQUEST_TIMEOUT : Verdict.CONTINUE;
        }
        if (inProgress > 0 || waitingNow != 0) {
            return Verdict.CONTINUE;
        }
        if (readsHeader) {
            return hasExpired(headerNanos, now, elapsed) ? Verdict.REQUEST_TIMEOUT : Verdict.CONTINUE;
        }
        return hasExpired(hasResponded ? idleNanos : headerNanos, now, elapsed) ? Verdict.CLOSE : Verdict.CONTINUE;
    }

    /** Returns how long the responses that wait have been waiting without progress. */
    long stalledNanos(long now) {
        return pendingState == 0 ? 0 : now - stalledSince;
    }

    private boolean hasExpired(long bound, long now, long elapsed) {
        return bound != Long.MAX_VALUE && now - since > bound + elapsed;
    }

    private boolean isStalled(long now, long elapsed, long waitingNow) {
        if (waitingNow != pendingState) {
            stalledSince = now;
            return false;
        }
        return stallNanos != Long.MAX_VALUE && now - stalledSince > stallNanos + elapsed;
    }

    /** Judges a body at the end of each period of grace by what arrived in it. */
    private boolean isBodySlow(long elapsed) {
        bodyNanos += elapsed;
        if (bodyNanos < graceNanos || graceNanos == Long.MAX_VALUE) {
            return false;
        }
        double expected = minBodyBytesPerSecond * (bodyNanos / 1e9);
        boolean isSlow = received - receivedBefore < expected;
        bodyNanos = 0;
        receivedBefore = received;
        return isSlow;
    }
}
