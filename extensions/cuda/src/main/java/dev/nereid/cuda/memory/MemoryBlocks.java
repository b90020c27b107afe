package dev.nereid.cuda.memory;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Divides a range of bytes into blocks, and joins them again. Knows offsets alone, never the memory. Safe for use by
 * any thread: the lock guards both maps, which together cover the range without overlap; no two free blocks touch.
 *
 * <p>The first free block that is large enough is used: time grows with the number of free blocks, not with their size.
 */
final class MemoryBlocks {
    /** That of the driver's own allocations of device memory, in bytes. */
    static final long ALIGNMENT = 256;

    private final ReentrantLock lock = new ReentrantLock();

    /** Sizes of free blocks by their offsets. */
    @GuardedBy("lock")
    private final TreeMap<Long, Long> free = new TreeMap<>();

    /** Sizes of blocks in use by their offsets. */
    @GuardedBy("lock")
    private final Map<Long, Long> used = new HashMap<>();

    @GuardedBy("lock")
    private long bytesInUse;

    /** Creates one free block; what exceeds a multiple of {@link #ALIGNMENT} is not used. */
    MemoryBlocks(long byteSize) {
        if (byteSize < 0) {
            throw new IllegalArgumentException("byteSize: " + byteSize + " (expected: >= 0)");
        }
        if (byteSize >= ALIGNMENT) {
            free.put(0L, byteSize & -ALIGNMENT);
        }
    }

    /**
     * Takes a block.
     *
     * @param byteSize the size needed, 0 or more; 0 takes a block too, so that every block has a different offset
     * @return its offset, a multiple of {@link #ALIGNMENT}; empty if no free block is large enough
     */
    OptionalLong allocate(long byteSize) {
        if (byteSize < 0) {
            throw new IllegalArgumentException("byteSize: " + byteSize + " (expected: >= 0)");
        }
        if (byteSize > Long.MAX_VALUE - ALIGNMENT) {
            return OptionalLong.empty();
        }
        long size = Math.max(ALIGNMENT, (byteSize + ALIGNMENT - 1) & -ALIGNMENT);
        lock.lock();
        try {
            for (Map.Entry<Long, Long> block : free.entrySet()) {
                if (block.getValue() >= size) {
                    return OptionalLong.of(take(block.getKey(), block.getValue(), size));
                }
            }
            return OptionalLong.empty();
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private long take(long offset, long available, long size) {
        free.remove(offset);
        if (available > size) {
            free.put(offset + size, available - size);
        }
        used.put(offset, size);
        bytesInUse += size;
        return offset;
    }

    /** Gives a block back; throws {@link IllegalStateException} unless a block in use begins there. */
    void free(long offset) {
        lock.lock();
        try {
            Long size = used.remove(offset);
            if (size == null) {
                throw new IllegalStateException("block at " + offset + ": not in use (expected: to be freed once)");
            }
            bytesInUse -= size;
            join(offset, size);
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private void join(long offset, long size) {
        long start = offset;
        long end = offset + size;
        Map.Entry<Long, Long> before = free.lowerEntry(offset);
        if (before != null && before.getKey() + before.getValue() == offset) {
            start = before.getKey();
        }
        Long after = free.remove(end);
        if (after != null) {
            end += after;
        }
        free.put(start, end - start);
    }

    /** Returns the sizes of all blocks in use together, with what their alignment adds. */
    long bytesInUse() {
        lock.lock();
        try {
            return bytesInUse;
        } finally {
            lock.unlock();
        }
    }
}
