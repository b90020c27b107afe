package dev.nereid.backend.python.memory;

import java.util.concurrent.atomic.AtomicLong;

/** Limits the bytes of shared memory of all processes of a model. Lock-free; safe for use by any thread. */
public final class MemoryBudget {
    private final long limit;
    private final AtomicLong used = new AtomicLong();

    /** Creates a budget of which nothing is used, with a limit in bytes; 0 for no shared memory at all. */
    public MemoryBudget(long limit) {
        if (limit < 0) {
            throw new IllegalArgumentException("limit: " + limit + " (expected: 0 or more)");
        }
        this.limit = limit;
    }

    /** Returns the limit in bytes. */
    public long limit() {
        return limit;
    }

    public long used() {
        return used.get();
    }

    /** Uses bytes, 0 or more, unless they exceed the limit with the ones in use; returns whether they are used now. */
    boolean reserve(long byteSize) {
        long before = used.get();
        while (byteSize <= limit - before) {
            if (used.compareAndSet(before, before + byteSize)) {
                return true;
            }
            before = used.get();
        }
        return false;
    }

    /** Ends the use of the bytes of one {@link #reserve}. */
    void free(long byteSize) {
        used.addAndGet(-byteSize);
    }
}
