package dev.nereid.server.memory;

import dev.nereid.api.InferenceException;
import dev.nereid.api.TensorBuffer;
import dev.nereid.api.TensorMemory;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The server's pool of tensor memory. Safe for use by any thread: every size class has a lock of its own, held for a
 * few loads and stores, and the two totals are atomic.
 *
 * <p>Requests are rounded up to size classes, four to each power of two, so at most a quarter of a large buffer is
 * wasted. Each class carves its pieces from slabs; a slab is one shared arena, so that any thread and native code may
 * use it. Reused memory is not cleared. A slab of which every piece is free is closed when the pool holds more idle
 * memory than it may; buffers above {@link #LARGEST_POOLED} are closed as soon as they are given back, because keeping
 * one of them idle would cost more than making it.
 *
 * <p>Closing the pool frees what is idle; buffers still handed out stay usable and are freed when they are given back.
 */
public final class TensorPool implements TensorMemory, AutoCloseable {
    /** The size of the largest buffer that is kept for reuse, in bytes. */
    static final long LARGEST_POOLED = 64L << 20;

    /** How much idle memory a pool keeps unless told otherwise, in bytes. */
    public static final long DEFAULT_IDLE_LIMIT = 256L << 20;

    /** More than any machine addresses; keeps sums of sizes far from overflow. */
    private static final long ADDRESSABLE = 1L << 48;

    /** When to ask again for what there is no room for at this moment. */
    private static final Duration PAUSE = Duration.ofSeconds(1);

    private final long limit;
    private final AtomicLong inUse = new AtomicLong();
    private final IdleMemory idle;
    private final List<SizeClass> classes;

    /**
     * Creates an empty pool.
     *
     * @param limit how much memory may be handed out at a time, in bytes
     * @param idleLimit how much memory that is not handed out is kept, in bytes
     */
    public TensorPool(long limit, long idleLimit) {
        if (limit < 0) {
            throw new IllegalArgumentException("limit: " + limit + " (expected: >= 0)");
        }
        if (idleLimit < 0) {
            throw new IllegalArgumentException("idleLimit: " + idleLimit + " (expected: >= 0)");
        }
        this.limit = Math.min(limit, ADDRESSABLE);
        idle = new IdleMemory(idleLimit);
        List<SizeClass> made = new ArrayList<>();
        for (int index = 0; index <= SizeClasses.indexOf(LARGEST_POOLED); index++) {
            made.add(new SizeClass(SizeClasses.sizeOf(index), idle, inUse));
        }
        classes = List.copyOf(made);
    }

    @Override
    public TensorBuffer allocate(long byteSize) {
        if (byteSize < 0) {
            throw new IllegalArgumentException("byteSize: " + byteSize + " (expected: >= 0)");
        }
        reserve(byteSize);
        try {
            return byteSize <= LARGEST_POOLED
                    ? classes.get(SizeClasses.indexOf(byteSize)).take(byteSize)
                    : largeBuffer(byteSize);
        } catch (OutOfMemoryError e) {
            inUse.addAndGet(-byteSize);
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    "out of memory for a tensor of " + byteSize + " bytes: the system gives no more, " + inUse.get()
                            + " bytes are in use");
        }
    }

    @Override
    public void reserveBytes(long byteSize) {
        reserve(byteSize);
    }

    @Override
    public void releaseBytes(long byteSize) {
        inUse.addAndGet(-byteSize);
    }

    @Override
    public long bytesInUse() {
        return inUse.get();
    }

    /**
     * Returns how much memory is kept for reuse.
     *
     * @return the size of all pieces that are not handed out, in bytes
     */
    public long bytesIdle() {
        return idle.bytes();
    }

    /** Frees idle memory now, and every buffer that is still handed out when it is given back. */
    @Override
    public void close() {
        idle.keepNothing();
        for (SizeClass each : classes) {
            each.closeIdle();
        }
    }

    private void reserve(long byteSize) {
        while (true) {
            long before = inUse.get();
            if (byteSize > limit - before) {
                String problem = "no memory for a tensor of " + byteSize + " bytes: " + before + " bytes of at most "
                        + limit + " are in use";
                throw byteSize > limit
                        ? new InferenceException(ErrorCode.UNAVAILABLE, problem) // nor will there ever be
                        : InferenceException.overloaded(problem, PAUSE);
            }
            if (inUse.compareAndSet(before, before + byteSize)) {
                return;
            }
        }
    }

    private TensorBuffer largeBuffer(long byteSize) {
        Arena arena = Arena.ofShared();
        try {
            return new LargeBuffer(arena, arena.allocate(byteSize, SizeClasses.ALIGNMENT), inUse);
        } catch (OutOfMemoryError e) {
            arena.close();
            throw e;
        }
    }
}
