package dev.nereid.server.memory;

import java.util.concurrent.atomic.AtomicLong;

/** How much memory of a pool is idle, and how much may be. Lock-free: one atomic total and one volatile bound. */
final class IdleMemory {
    private final AtomicLong bytes = new AtomicLong();
    private volatile long limit;

    IdleMemory(long limit) {
        this.limit = limit;
    }

    void add(long change) {
        bytes.addAndGet(change);
    }

    long bytes() {
        return bytes.get();
    }

    boolean isTooMuch() {
        return bytes.get() > limit;
    }

    void keepNothing() {
        limit = 0;
    }
}
