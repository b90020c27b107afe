package dev.nereid.scheduler.oracle;

/** A time at which a waiting sequence or request expires. Guarded by the lock of the sequences. */
final class Expiry {
    /** The first nanosecond at which it is expired, on the scale of the clock. */
    final long nanos;

    /** The action at that time, under the lock. */
    private final Runnable action;

    /** The index in the heap; maintained by the heap, below 0 outside of it. */
    int index = -1;

    Expiry(long nanos, Runnable action) {
        this.nanos = nanos;
        this.action = action;
    }

    boolean isBefore(Expiry other) {
        return nanos - other.nanos < 0;
    }

    boolean isPast(long now) {
        return now - nanos >= 0;
    }

    void run() {
        action.run();
    }
}
