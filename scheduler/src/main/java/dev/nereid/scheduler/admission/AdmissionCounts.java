package dev.nereid.scheduler.admission;

import static java.util.Objects.requireNonNull;

import java.util.concurrent.atomic.AtomicLong;

/** Counts requests and bytes in flight up to their limits, for one or all models. Safe for use by any thread. */
public final class AdmissionCounts {
    final BoundedCount requests;
    final BoundedCount bytes;

    /** Creates counts of 0 with limits of requests and bytes in flight. */
    public AdmissionCounts(AdmissionLimits limits) {
        requireNonNull(limits, "limits");
        requests = new BoundedCount(limits.requests());
        bytes = new BoundedCount(limits.bytes());
    }

    /**
     * A counter that never exceeds its limit. Lock-free; safe for use by any thread.
     *
     * <p>An amount that would exceed the limit is never added, not even for a moment: two amounts that are too large do
     * not exclude a third that fits. Without a limit nothing is counted.
     */
    static final class BoundedCount {
        private final long limit;
        private final AtomicLong count = new AtomicLong();

        /** Creates a count of 0 with a maximum sum; 0 for none. */
        BoundedCount(long limit) {
            this.limit = limit;
        }

        /** Returns whether an amount fits at this moment; changes nothing. */
        boolean fits(long amount) {
            return limit == 0 || amount <= limit - count.get();
        }

        /** Adds an amount, 0 or more, if it fits. */
        boolean tryAdd(long amount) {
            if (limit == 0) {
                return true;
            }
            while (true) {
                long before = count.get();
                if (amount > limit - before) { // cannot overflow: neither is below 0
                    return false;
                }
                if (count.compareAndSet(before, before + amount)) {
                    return true;
                }
            }
        }

        void subtract(long amount) {
            if (limit != 0) {
                count.addAndGet(-amount);
            }
        }

        /** Returns the sum; always 0 without a limit. */
        long count() {
            return count.get();
        }
    }
}
