package dev.nereid.server.memory;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** The idle mappings of one size. Guarded by its lock, under which nothing is allocated, closed or called. */
final class MappedSizeClass {
    private final PoolBytes bytes;
    private final ReentrantLock lock = new ReentrantLock();
    private final Deque<Mapping> idle = new ArrayDeque<>(); // guarded by lock

    MappedSizeClass(PoolBytes bytes) {
        this.bytes = bytes;
    }

    /** Takes the mapping that was used last, if one is idle. Its counted bytes stay held. */
    @Nullable
    Mapping take() {
        lock.lock();
        try {
            Mapping mapping = idle.pollFirst();
            if (mapping != null) {
                bytes.idle(-mapping.counted());
            }
            return mapping;
        } finally {
            lock.unlock();
        }
    }

    /** Takes a mapping back, unless the pool has enough idle memory; says whether it did. */
    boolean release(Mapping mapping) {
        lock.lock();
        try {
            bytes.idle(mapping.counted());
            if (bytes.exceedsIdleLimit()) {
                bytes.idle(-mapping.counted());
                return false;
            }
            idle.addFirst(mapping);
            return true;
        } finally {
            lock.unlock();
        }
    }
}
