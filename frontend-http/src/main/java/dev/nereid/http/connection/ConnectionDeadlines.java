package dev.nereid.http.connection;

import java.time.Duration;

/**
 * Tracks the timeouts of one connection: header, body, idle and unread responses. Confined to one event loop.
 *
 * <p>Each event costs the write of one or two fields, with a time that may be as old as the last {@link #check}; so the
 * time between two checks is added to each timeout. The state follows from the events: a request is read from its first
 * byte to the end of its header, then to the end of its body; it is in progress until its response was written. A
 * connection without any of these is idle.
 */
final class ConnectionDeadlines {
    /** The action that a timeout check requires. */
    enum Verdict {
        /** No timeout has expired. */
        CONTINUE,
        /** The connection has been idle for too long. */
        CLOSE,
        /** The rest of a request is late. */
        REQUEST_TIMEOUT,
        /** The client does not read pending responses. */
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

    /** Creates the state of a new connection at a time, in nanoseconds from any origin. */
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

    void bytesArrived(int count, long now) {
        received += count;
        if (!readsHeader && !readsBody) {
            readsHeader = true;
            since = now;
        }
    }

    /** Records that the header of a request is complete. */
    void headerRead() {
        readsHeader = false;
        readsBody = true;
        bodyNanos = 0;
        receivedBefore = received;
        inProgress++;
    }

    /** Records that a request is complete; {@code hasMore} if bytes of the next one have arrived already. */
    void requestRead(boolean hasMore, long now) {
        readsBody = false;
        readsHeader = hasMore;
        since = now;
    }

    void responseWritten(long now) {
        inProgress--;
        hasResponded = true;
        since = now;
    }

    /** Returns whether a response was written. */
    boolean hasResponded() {
        return hasResponded;
    }

    /** Returns the number of requests after their header was read and before their response is complete. */
    int inProgress() {
        return inProgress;
    }

    boolean readsBody() {
        return readsBody;
    }

    /** Returns whether closing loses no request: the connection is idle, or reads the header of its first request. */
    boolean isEvictable() {
        return inProgress == 0 && !readsBody && !(readsHeader && hasResponded);
    }

    /** Returns when the current state began. */
    long since() {
        return since;
    }

    /**
     * Checks the timeouts. To be called periodically.
     *
     * @param elapsed the nanoseconds since the last check
     * @param isReading whether the server reads what the client sends
     * @param pending a fingerprint of the pending responses: 0 if there are none, another number than before if the
     *     client has read something
     * @return the required action
     */
    Verdict check(long now, long elapsed, boolean isReading, long pending) {
        if (pending != 0 && isStalled(now, elapsed, pending)) {
            return Verdict.ABORT;
        }
        pendingState = pending;
        if (readsBody) {
            return inProgress <= 1 && isReading && isBodySlow(elapsed) ? Verdict.REQUEST_TIMEOUT : Verdict.CONTINUE;
        }
        if (inProgress > 0 || pending != 0) {
            return Verdict.CONTINUE;
        }
        if (readsHeader) {
            return hasExpired(headerNanos, now, elapsed) ? Verdict.REQUEST_TIMEOUT : Verdict.CONTINUE;
        }
        return hasExpired(hasResponded ? idleNanos : headerNanos, now, elapsed) ? Verdict.CLOSE : Verdict.CONTINUE;
    }

    /** Returns how long pending responses have waited without progress. */
    long stalledNanos(long now) {
        return pendingState == 0 ? 0 : now - stalledSince;
    }

    private boolean hasExpired(long timeout, long now, long elapsed) {
        return timeout != Long.MAX_VALUE && now - since > timeout + elapsed;
    }

    private boolean isStalled(long now, long elapsed, long pending) {
        if (pending != pendingState) {
            stalledSince = now;
            return false;
        }
        return stallNanos != Long.MAX_VALUE && now - stalledSince > stallNanos + elapsed;
    }

    /** Compares the rate of a body with the minimum. Called at the end of each grace period. */
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
