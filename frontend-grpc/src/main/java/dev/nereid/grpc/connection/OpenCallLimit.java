package dev.nereid.grpc.connection;

import dev.nereid.api.InferenceException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** Limits the number of open calls of all connections. Lock-free; safe for use by any thread. */
public final class OpenCallLimit {
    /** The time after which a refused client may retry. */
    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    /** The divisor of the call limit from which connections have shares. */
    private static final int FAIR_PART = 4;

    /** The divisor of the remaining calls that gives the share of one connection. */
    private static final int SHARE_PART = 8;

    /** The minimum share of a connection. */
    private static final int MIN_SHARE = 16;

    private final long max;
    private final AtomicLong calls = new AtomicLong();

    /** Creates a limit with no open calls. */
    public OpenCallLimit(long max) {
        this.max = max;
    }

    long max() {
        return max;
    }

    /** Adds to the number of open calls; a negative count subtracts. */
    void add(long count) {
        calls.addAndGet(count);
    }

    /** Says whether every further call is refused. */
    boolean isFull() {
        return calls.get() >= max;
    }

    /** Says whether so many calls are open that connections have shares. */
    boolean isShared() {
        return calls.get() >= max / FAIR_PART;
    }

    /**
     * Returns whether a further call of a connection with so many open calls is refused. From a quarter of the limit
     * on, each connection may have a part of the remaining calls, so that clients with few calls are always admitted.
     * The share shrinks as calls are opened; connections without calls do not shrink it.
     */
    boolean isFullFor(int open) {
        long all = calls.get();
        if (all < max / FAIR_PART) {
            return false;
        }
        return all >= max || open > Math.max(MIN_SHARE, (max - all) / SHARE_PART);
    }

    InferenceException refusal() {
        return InferenceException.overloaded("too many calls are open (expected: at most " + max + ")", RETRY_AFTER);
    }

    InferenceException unreadRefusal() {
        return InferenceException.overloaded(
                "too many responses wait on this connection (expected: a client that reads them)", RETRY_AFTER);
    }
}
