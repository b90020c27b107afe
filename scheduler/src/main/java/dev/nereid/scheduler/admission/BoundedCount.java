package dev.nereid.scheduler.admission;

import java.util.concurrent.atomic.AtomicLong;

/**
 * A counter that never exceeds its limit. Lock-free; safe for use by any thread.
 *
 * <p>What would exceed the bound is not added and taken back, but never added: two that are each too much do not keep
 * out a third that fits. Without a bound nothing is counted.
 */
final class BoundedCount {
    private final long bound;
    private final AtomicLong count = new AtomicLong();

    /**
     * Begins with nothing.
     *
     * @param bound the largest sum; 0 for any
     */
    BoundedCount(long bound) {
        this.bound = bound;
    }

    /** Says whether an amount would fit at this moment; changes nothing. */
    boolean fits(long amount) {
        return bound == 0 || amount <= bound - count.get();
    }

    /** Adds an amount, 0 or more, if it fits. */
    boolean tryAdd(long amount) {
        if (bound == 0) {
            return true;
        }
        while (true) {
            long before = count.get();
            if (amount > bound - before) { // cannot overflow: neither is below 0
                return false;
            }
            if (count.compareAndSet(before, before + amount)) {
                return true;
            }
        }
    }

    /** Takes away what was added. */
    void subtract(long amount) {
        if (bound != 0) {
            count.addAndGet(-amount);
        }
    }

    /** Returns the sum; always 0 without a bound. */
    long count() {
        return count.get();
    }
}
