package dev.nereid.grpc.connection;

import dev.nereid.api.InferenceException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** Limits the number of open calls of all connections. Lock-free; safe for use by any thread. */
public final class OpenCallLimit {
    /** When to ask again for what there is no room for at this moment. */
    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    /** The part of the bound on calls from which connections get shares. */
    private static final int FAIR_PART = 4;

    /** The part of the calls that may still be opened which one connection may have open. */
    private static final int SHARE_PART = 8;

    /** The calls that a connection may have open in any case. */
    private static final int MIN_SHARE = 16;

    private final long max;
    private final AtomicLong calls = new AtomicLong();

    /**
     * Creates a limit with no open calls.
     *
     * @param max how many calls may be open
     */
    public OpenCallLimit(long max) {
        this.max = max;
    }

    /** Returns how many calls may be open. */
    long max() {
        return max;
    }

    /** Adds to the number of open calls; a negative count subtracts. */
    void add(long count) {
        calls.addAndGet(count);
    }

    /** Says whether no further call is let in. */
    boolean isFull() {
        return calls.get() >= max;
    }

    /** Says whether so many calls are open that connections get shares. */
    boolean isShared() {
        return calls.get() >= max / FAIR_PART;
    }

    /**
     * Says whether no further call of a connection is let in. From a quarter of the bound on, no connection may have more
     * than a part of what is left, so that there is always room for clients with few calls: the share of each shrinks as
     * calls are opened, but not by connections that have no calls.
     *
     * @param open the calls of the connection that are open
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
