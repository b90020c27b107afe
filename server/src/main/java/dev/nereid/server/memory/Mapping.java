package dev.nereid.server.memory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A memory mapping in an arena, of which a part is counted as held. Confined to its holder, or guarded by the lock of
 * the class in which it lies idle.
 *
 * <p>Nothing behind the counted part was ever touched, so it holds zeros and takes no memory of the machine.
 */
final class Mapping {
    private final Arena arena;
    private final MemorySegment memory;
    private long counted;

    private Mapping(Arena arena, MemorySegment memory) {
        this.arena = arena;
        this.memory = memory;
    }

    /**
     * Takes memory from the system.
     *
     * @param counted how much of it is counted
     * @param slowly whether the rest is filled bit by bit, if at all
     */
    static Mapping create(Optional<PageMapper> pages, long byteSize, long counted, boolean slowly) {
        Arena arena = Arena.ofShared();
        boolean created = false;
        try {
            Mapping mapping = new Mapping(
                    arena,
                    pages.isPresent() && byteSize > 0
                            ? pages.get().map(byteSize, arena)
                            : arena.allocate(byteSize, SizeClass.ALIGNMENT));
            if (slowly) {
                pages.ifPresent(present -> present.keepSmall(mapping.memory));
            }
            mapping.counted = counted;
            created = true;
            return mapping;
        } finally {
            if (!created) {
                arena.close();
            }
        }
    }

    MemorySegment slice(long byteSize) {
        return memory.asSlice(0, byteSize);
    }

    long counted() {
        return counted;
    }

    void count(long bytes) {
        counted = bytes;
    }

    void close() {
        arena.close();
    }

    /** The idle mappings of one size. Guarded by its lock, under which nothing is allocated, closed or called. */
    static final class MappedSizeClass {
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

    /**
     * Unmaps mappings, large ones on a separate thread. The kernel takes a millisecond for 16 MiB. Safe for use by any
     * thread.
     */
    static final class Releaser implements AutoCloseable {
        /** Mappings of which more was touched are left to the thread. */
        private static final long MAX_INLINE = 2L << 20;

        private static final long IDLE_SECONDS = 10;

        private final ThreadPoolExecutor thread = new ThreadPoolExecutor(
                1,
                1,
                IDLE_SECONDS,
                TimeUnit.SECONDS,
                new LinkedBlockingQueue<>(),
                task -> Thread.ofPlatform()
                        .daemon()
                        .name("tensor-memory")
                        .inheritInheritableThreadLocals(false)
                        .unstarted(task));

        Releaser() {
            thread.allowCoreThreadTimeOut(true);
        }

        void close(Mapping mapping) {
            if (mapping.counted() <= MAX_INLINE) {
                mapping.close();
                return;
            }
            try {
                thread.execute(mapping::close);
            } catch (RejectedExecutionException _) { // the pool was closed
                mapping.close();
            }
        }

        /** Closes the remaining mappings, and lets the thread end. */
        @Override
        public void close() {
            thread.shutdown();
        }
    }
}
