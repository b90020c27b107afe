package dev.nereid.grpc.connection;

import java.util.function.LongSupplier;

/**
 * Limits floods of resets or empty frames on one connection. The limit is their number in a time window. Confined to
 * the event loop of its connection. {@link ConnectionLimits} counts with it, and closes a
 * connection that exceeds it.
 */
final class FloodLimit {
    /** The maximum number of resets in a window, by the client or for its errors; one more for each completed call. */
    private static final int MAX_RESETS = 2_000;

    /** Frames without content in a window. */
    private static final int MAX_EMPTY_FRAMES = 1_000;

    private static final long WINDOW_NANOS = 10_000_000_000L;
    private static final int MAX_WINDOWS = 4;

    private final long allowed;
    private final LongSupplier nanoTime;
    private long left;
    private long windowStart;

    /** Creates a limit of a number of events within ten seconds. */
    FloodLimit(int allowed, LongSupplier nanoTime) {
        this.allowed = allowed;
        this.nanoTime = nanoTime;
        this.left = allowed;
        this.windowStart = nanoTime.getAsLong();
    }

    static FloodLimit ofResets(LongSupplier nanoTime) {
        return new FloodLimit(MAX_RESETS, nanoTime);
    }

    static FloodLimit ofEmptyFrames(LongSupplier nanoTime) {
        return new FloodLimit(MAX_EMPTY_FRAMES, nanoTime);
    }

    /** Allows one more event, up to the budget of a few windows. */
    void allowOneMore() {
        if (left < MAX_WINDOWS * allowed) {
            left++;
        }
    }

    /** Counts an event. Returns false if it exceeds the budget. */
    boolean tryCount() {
        if (--left >= 0) {
            return true;
        }
        long now = nanoTime.getAsLong();
        if (now - windowStart < WINDOW_NANOS) {
            return false;
        }
        windowStart = now;
        left = allowed - 1;
        return true;
    }
}
