package dev.nereid.backend.python.call;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Native memory for copies of inputs. Lock-free; safe for use by any thread.
 *
 * <p>Blocks for the small inputs of one call are used again. Memory that the garbage collector frees would grow to its limit
 * between collections, since calls leave little on the heap.
 */
final class InputCopies {
    /** The size of a block, in bytes. */
    static final long BLOCK = 32 << 10;

    /** In bytes; that of the server's own buffers. */
    private static final long ALIGNMENT = 64;

    private static final int POOLED = 64;

    private final AtomicReferenceArray<@Nullable MemorySegment> blocks = new AtomicReferenceArray<>(POOLED);

    /** The copies of the inputs of one call. Confined to one thread until the request is sent, but for the release. */
    final class Copies {
        /** The copies that are read, and the thread that makes them. */
        private final AtomicInteger uses = new AtomicInteger(1);

        private final AtomicReference<@Nullable MemorySegment> block = new AtomicReference<>();
        private final AtomicReference<@Nullable Arena> arena = new AtomicReference<>();
        private long position;

        /** Returns a copy of memory, to be released once; throws {@link OutOfMemoryError} without native memory. */
        MemorySegment copy(MemorySegment source) {
            long size = source.byteSize();
            uses.incrementAndGet();
            return (size <= BLOCK - position ? allocate(size) : allocateLarge(size)).copyFrom(source);
        }

        private MemorySegment allocate(long size) {
            MemorySegment memory = block.getPlain();
            if (memory == null) {
                memory = take();
                block.set(memory);
            }
            MemorySegment part = memory.asSlice(position, size);
            position = Math.min(BLOCK, position + size + ALIGNMENT - 1 & -ALIGNMENT);
            return part;
        }

        private MemorySegment allocateLarge(long size) {
            Arena own = arena.getPlain();
            if (own == null) {
                own = Arena.ofShared();
                arena.set(own);
            }
            return own.allocate(size, ALIGNMENT);
        }

        /** Ends the use of one copy, or by the thread that makes them; the last one frees all. Called by any thread. */
        void release() {
            if (uses.decrementAndGet() == 0) {
                free();
            }
        }

        /** Frees all copies. Later calls do nothing. */
        void free() {
            MemorySegment memory = block.getAndSet(null);
            if (memory != null) {
                give(memory);
            }
            Arena own = arena.getAndSet(null);
            if (own != null) {
                own.close();
            }
        }
    }

    Copies begin() {
        return new Copies();
    }

    private MemorySegment take() {
        for (int i = 0; i < POOLED; i++) {
            if (blocks.getPlain(i) != null) {
                MemorySegment block = blocks.getAndSet(i, null);
                if (block != null) {
                    return block;
                }
            }
        }
        return Arena.ofAuto().allocate(BLOCK, ALIGNMENT);
    }

    private void give(MemorySegment block) {
        for (int i = 0; i < POOLED; i++) {
            if (blocks.getPlain(i) == null && blocks.compareAndSet(i, null, block)) {
                return;
            }
        }
    }
}
