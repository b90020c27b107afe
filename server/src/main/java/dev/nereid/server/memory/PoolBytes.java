package dev.nereid.server.memory;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Byte counts and limits of a pool: held, in use and idle. Lock-free: three atomic totals.
 *
 * <p>Memory that the pool took from the system is <em>held</em>: allocated, idle, or lost to rounding. It never exceeds
 * the limit. A part of the limit is reserved for small pieces, so that bodies of hundreds of megabytes do not starve
 * requests of a few bytes.
 */
final class PoolBytes {
    /** Pieces up to here may use all of the limit. */
    static final long SMALL_PIECE = 256L << 10;

    /** Smaller limits keep nothing for small pieces. */
    private static final long MIN_DIVIDED_LIMIT = 64L << 20;

    private static final int PART_FOR_SMALL = 16;

    private final long limit;
    private final long largeLimit;
    private final AtomicLong held = new AtomicLong();
    private final AtomicLong inUse = new AtomicLong();
    private final AtomicLong idle = new AtomicLong();
    private volatile long idleLimit;

    PoolBytes(long limit, long idleLimit) {
        this.limit = limit;
        this.largeLimit = limit < MIN_DIVIDED_LIMIT ? limit : limit - limit / PART_FOR_SMALL;
        this.idleLimit = idleLimit;
    }

    /** Returns how much may be held at a time. */
    long limit() {
        return limit;
    }

    /** Returns the size of the largest piece that there can be. */
    long largest() {
        return Math.max(largeLimit, Math.min(limit, SMALL_PIECE));
    }

    /** Returns whether a piece would fit if nothing else were held. */
    boolean canEverFit(long pieceSize) {
        return pieceSize <= limitFor(pieceSize);
    }

    /** Counts memory for a piece that is to be taken from the system, if the limit allows it. */
    boolean tryHold(long bytes, long pieceSize) {
        long maximum = limitFor(pieceSize);
        while (true) {
            long before = held.get();
            if (bytes > maximum - before) {
                return false;
            }
            if (held.compareAndSet(before, before + bytes)) {
                return true;
            }
        }
    }

    /** Returns how much is missing for {@link #tryHold}. */
    long missing(long bytes, long pieceSize) {
        return Math.max(1, held.get() + bytes - limitFor(pieceSize));
    }

    /** Subtracts memory that returns to the system. */
    void free(long bytes) {
        held.addAndGet(-bytes);
    }

    long held() {
        return held.get();
    }

    void use(long bytes) {
        inUse.addAndGet(bytes);
    }

    long inUse() {
        return inUse.get();
    }

    void idle(long change) {
        idle.addAndGet(change);
    }

    long idle() {
        return idle.get();
    }

    boolean exceedsIdleLimit() {
        return idle.get() > idleLimit;
    }

    void clearIdleLimit() {
        idleLimit = 0;
    }

    private long limitFor(long pieceSize) {
        return pieceSize > SMALL_PIECE ? largeLimit : limit;
    }
}
