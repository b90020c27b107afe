package dev.nereid.server.memory;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.api.memory.GrowingBuffer;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The server's pool of tensor memory. Safe for use by any thread: every size class has a separate lock, held for a few
 * loads and stores, and the totals are atomic.
 *
 * <p>The limit covers allocated and idle memory. An allocation that would exceed it frees idle memory first, and is
 * refused if that is not enough.
 *
 * <p>Allocations are rounded up to size classes, four to each power of two. Small pieces are carved from slabs; a
 * larger one is a separate mapping, of which only the requested part is counted and taken from the machine. Each is one
 * shared arena, so that any thread and native code may use it. Reused memory is cleared only for allocations of zeroed
 * memory. A slab of which every piece is free, and a mapping, is closed when the pool holds more idle memory than its
 * limit; buffers above {@link #MAX_POOLED} are unmapped as soon as they are closed, because keeping one of them idle
 * would cost more than mapping it again.
 *
 * <p>Closing the pool frees idle memory; buffers still in use stay usable and are freed when they are closed.
 */
public final class TensorPool implements TensorMemory, AutoCloseable {
    /** The size of the largest buffer that is kept for reuse, in bytes. */
    static final long MAX_POOLED = 64L << 20;

    /** The default limit of idle memory, in bytes. */
    public static final long DEFAULT_IDLE_LIMIT = 256L << 20;

    /** The content of freed memory, if it is poisoned. */
    static final byte POISON = (byte) 0xDE;

    /** The part of the limit that may be idle by default. */
    private static final int IDLE_PART = 8;

    /** More than any machine addresses; keeps sums of sizes far from overflow. */
    private static final long ADDRESSABLE = 1L << 48;

    /** The maximum growth of a buffer. A buffer grows by a page at least and by a quarter of its size, up to this. */
    private static final long MAX_STEP = 1L << 20;

    private static final long PAGE = 4096;

    /** The time after which a refused allocation may be retried. */
    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    private final GpuAccess gpus;
    private final PoolBytes bytes;
    private final boolean poisoned;
    private final List<SizeClass> small;
    /** The classes of the sizes above the small ones. */
    private final List<Mapping.MappedSizeClass> mapped;

    private final Mapping.Releaser reclaimer = new Mapping.Releaser();

    /**
     * Creates an empty pool.
     *
     * @param limit the maximum of memory held at a time, in bytes
     * @param idleLimit the maximum of idle memory, in bytes
     */
    public TensorPool(long limit, long idleLimit) {
        this(limit, idleLimit, false);
    }

    /**
     * Creates an empty pool.
     *
     * @param limit the maximum of memory held at a time, in bytes
     * @param idleLimit the maximum of idle memory, in bytes
     * @param poisoned whether freed memory, and allocated memory with undefined content, is overwritten, so that tests
     *     detect its use
     */
    public TensorPool(long limit, long idleLimit, boolean poisoned) {
        this(limit, idleLimit, poisoned, GpuAccess.NONE);
    }

    /**
     * Creates an empty pool beside the memory of GPUs, which has separate limits.
     *
     * @param limit the maximum of memory held at a time, in bytes
     * @param idleLimit the maximum of idle memory, in bytes
     * @param poisoned whether memory is overwritten
     * @param gpus the memory of GPUs and pinned memory; not closed by the pool
     */
    public TensorPool(long limit, long idleLimit, boolean poisoned, GpuAccess gpus) {
        this.gpus = gpus;
        if (limit < 0) {
            throw new IllegalArgumentException("limit: " + limit + " (expected: >= 0)");
        }
        if (idleLimit < 0) {
            throw new IllegalArgumentException("idleLimit: " + idleLimit + " (expected: >= 0)");
        }
        this.poisoned = poisoned;
        bytes = new PoolBytes(Math.min(limit, ADDRESSABLE), idleLimit);
        List<SizeClass> pieces = new ArrayList<>();
        List<Mapping.MappedSizeClass> mappings = new ArrayList<>();
        for (int index = 0; index <= SizeClass.indexOf(MAX_POOLED); index++) {
            if (SizeClass.sizeOf(index) <= SizeClass.MAX_PIECE) {
                pieces.add(new SizeClass(SizeClass.sizeOf(index), bytes, poisoned));
            } else {
                mappings.add(new Mapping.MappedSizeClass(bytes));
            }
        }
        small = List.copyOf(pieces);
        mapped = List.copyOf(mappings);
    }

    /** Returns the default limit of idle memory: an eighth of the pool's, at most {@link #DEFAULT_IDLE_LIMIT}. */
    public static long idleLimit(long limit) {
        return Math.min(DEFAULT_IDLE_LIMIT, limit / IDLE_PART);
    }

    /** Links native functions ahead of the first large buffer. May take a third of a second on a cold JVM. */
    public static void prepare() {
        PageMapper.system();
    }

    @Override
    public TensorBuffer allocate(long byteSize) {
        TensorBuffer buffer = take(byteSize, false);
        if (poisoned) {
            buffer.segment().fill(POISON);
        }
        return buffer;
    }

    @Override
    public TensorBuffer allocateZeroed(long byteSize) {
        return take(byteSize, true);
    }

    @Override
    public Optional<TensorBuffer> allocatePinned(long byteSize) {
        return gpus.allocatePinned(byteSize);
    }

    @Override
    public Optional<String> gpuUuid(int gpu) {
        return gpus.uuid(gpu);
    }

    @Override
    public Optional<DeviceMemory.Use> pinnedUse() {
        return gpus.pinnedUse();
    }

    @Override
    public Optional<DeviceMemory> device(MemoryPlace place) {
        return gpus.memory(place);
    }

    private TensorBuffer take(long byteSize, boolean zeroed) {
        if (byteSize < 0) {
            throw new IllegalArgumentException("byteSize: " + byteSize + " (expected: >= 0)");
        }
        TensorBuffer buffer =
                byteSize <= SizeClass.MAX_PIECE ? takePiece(byteSize, zeroed) : takeMapping(byteSize, zeroed);
        bytes.use(byteSize);
        return buffer;
    }

    private TensorBuffer takePiece(long byteSize, boolean zeroed) {
        SizeClass pieces = small.get(SizeClass.indexOf(byteSize));
        SizeClass.PooledBuffer piece = pieces.take(byteSize);
        if (piece == null && tryHold(pieces.slabSize(), byteSize)) {
            piece = system(byteSize, pieces.slabSize(), () -> pieces.takeOfNewSlab(byteSize));
        }
        if (piece == null) { // a slab does not fit, but perhaps the piece alone does
            hold(byteSize, byteSize);
            return system(
                    byteSize,
                    byteSize,
                    () -> new MappedBuffer(
                            this,
                            Mapping.create(Optional.empty(), byteSize, byteSize, false),
                            null,
                            byteSize,
                            byteSize));
        }
        if (zeroed) {
            piece.segment().fill((byte) 0);
        }
        return piece;
    }

    private TensorBuffer takeMapping(long byteSize, boolean zeroed) {
        Mapping.MappedSizeClass mappedClass = mappedClassOf(byteSize);
        Mapping mapping = mappedClass == null ? null : mappedClass.take();
        if (mappedClass == null || mapping == null) {
            hold(byteSize, byteSize);
            long size = mappedClass == null ? byteSize : SizeClass.sizeOf(SizeClass.indexOf(byteSize));
            Mapping fresh =
                    system(byteSize, byteSize, () -> Mapping.create(PageMapper.system(), size, byteSize, false));
            return new MappedBuffer(this, fresh, mappedClass, byteSize, byteSize);
        }
        long dirty = Math.min(mapping.counted(), byteSize);
        if (byteSize > mapping.counted()) {
            holdMore(mapping, mappedClass, byteSize);
        }
        if (zeroed) {
            mapping.slice(dirty).fill((byte) 0);
        }
        return new MappedBuffer(this, mapping, mappedClass, byteSize, byteSize);
    }

    @Override
    public GrowingBuffer reserve(long capacity) {
        if (capacity < 0) {
            throw new IllegalArgumentException("capacity: " + capacity + " (expected: >= 0)");
        }
        if (!bytes.canEverFit(capacity)) {
            throw refusal(capacity, capacity);
        }
        Optional<PageMapper> pages = PageMapper.system();
        if (pages.isEmpty() || capacity <= SizeClass.MAX_PIECE) {
            return TensorMemory.super.reserve(capacity);
        }
        Mapping.MappedSizeClass mappedClass = mappedClassOf(capacity);
        Mapping mapping = mappedClass == null ? null : mappedClass.take();
        if (mapping == null) {
            long size = mappedClass == null ? capacity : SizeClass.sizeOf(SizeClass.indexOf(capacity));
            mapping = system(capacity, 0, () -> Mapping.create(pages, size, 0, true));
        }
        long used = Math.min(mapping.counted(), capacity);
        bytes.use(used);
        return new MappedBuffer(this, mapping, mappedClass, capacity, used);
    }

    /** Counts more of a mapping that its holder fills; returns the holder's size after that. */
    long grow(Mapping mapping, long needed, long capacity) {
        if (needed > capacity) {
            throw refusal(needed, needed);
        }
        long counted = mapping.counted();
        if (needed <= counted) {
            return Math.min(counted, capacity);
        }
        long step = Math.clamp(counted / 4, PAGE, MAX_STEP);
        long target = Math.min(capacity, Math.max(counted + step, (needed + PAGE - 1) & -PAGE));
        while (!tryHold(target - counted, target)) {
            if (target == needed) {
                throw refusal(needed - counted, needed);
            }
            // Half as much beyond the need: near the limit, a holder that needs one byte more would come for each byte.
            target = needed + (target - needed) / 2;
        }
        mapping.count(target);
        return target;
    }

    void use(long change) {
        bytes.use(change);
    }

    void release(Mapping mapping, Mapping.@Nullable MappedSizeClass mappedClass, long used) {
        if (poisoned) {
            mapping.slice(mapping.counted()).fill(POISON);
        }
        bytes.use(-used);
        if (mappedClass == null || !mappedClass.release(mapping)) {
            free(mapping);
        }
    }

    @Override
    public void reserveBytes(long byteSize) {
        hold(byteSize, byteSize);
        bytes.use(byteSize);
    }

    @Override
    public void releaseBytes(long byteSize) {
        bytes.use(-byteSize);
        bytes.free(byteSize);
    }

    @Override
    public long bytesInUse() {
        return bytes.inUse();
    }

    @Override
    public long limit() {
        return bytes.limit();
    }

    @Override
    public long largestBuffer() {
        return bytes.largest();
    }

    /** Returns the bytes of all idle pieces, which are kept for reuse. */
    public long bytesIdle() {
        return bytes.idle();
    }

    /** Returns the allocated and idle bytes that the pool holds of the system. They never exceed the limit. */
    public long bytesHeld() {
        return bytes.held();
    }

    /** Frees all idle memory; later buffers are kept for reuse as before. */
    void freeIdle() {
        trim(Long.MAX_VALUE);
    }

    /** Frees idle memory now, and every other buffer when it is closed. */
    @Override
    public void close() {
        bytes.clearIdleLimit();
        trim(Long.MAX_VALUE);
        reclaimer.close();
    }

    /**
     * Frees idle memory, and returns whether it freed any. The largest pieces are first, until the target is met or
     * none is idle.
     */
    private boolean trim(long target) {
        long freed = 0;
        for (int i = mapped.size() - 1; i >= 0 && freed < target; i--) {
            Mapping mapping = mapped.get(i).take();
            while (mapping != null) {
                freed += Math.max(1, mapping.counted());
                free(mapping);
                mapping = freed < target ? mapped.get(i).take() : null;
            }
        }
        for (int i = small.size() - 1; i >= 0 && freed < target; i--) {
            freed += small.get(i).closeIdle(target - freed);
        }
        return freed > 0;
    }

    private void free(Mapping mapping) {
        bytes.free(mapping.counted());
        reclaimer.close(mapping);
    }

    private Mapping.@Nullable MappedSizeClass mappedClassOf(long byteSize) {
        return byteSize > MAX_POOLED ? null : mapped.get(SizeClass.indexOf(byteSize) - small.size());
    }

    private void holdMore(Mapping mapping, Mapping.@Nullable MappedSizeClass mappedClass, long byteSize) {
        boolean held = false;
        try {
            hold(byteSize - mapping.counted(), byteSize);
            mapping.count(byteSize);
            held = true;
        } finally {
            if (!held && (mappedClass == null || !mappedClass.release(mapping))) {
                free(mapping);
            }
        }
    }

    private void hold(long needed, long pieceSize) {
        if (!tryHold(needed, pieceSize)) {
            throw refusal(needed, pieceSize);
        }
    }

    /** Counts memory as held, after freeing idle memory if need be. */
    private boolean tryHold(long needed, long pieceSize) {
        if (bytes.tryHold(needed, pieceSize)) {
            return true;
        }
        if (!bytes.canEverFit(Math.max(needed, pieceSize))) {
            return false;
        }
        while (trim(bytes.missing(needed, pieceSize))) {
            if (bytes.tryHold(needed, pieceSize)) {
                return true;
            }
        }
        return bytes.tryHold(needed, pieceSize);
    }

    /** Takes memory of the system that was counted as held. */
    private <T> T system(long byteSize, long held, Supplier<T> source) {
        boolean allocated = false;
        try {
            T memory = source.get();
            allocated = true;
            return memory;
        } catch (OutOfMemoryError e) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    "out of memory for a tensor of " + byteSize + " bytes: the system gives no more, " + bytes.inUse()
                            + " bytes are in use");
        } finally {
            if (!allocated) {
                bytes.free(held);
            }
        }
    }

    private InferenceException refusal(long needed, long pieceSize) {
        String problem = "no memory for a tensor of " + pieceSize + " bytes: " + bytes.inUse() + " bytes of at most "
                + bytes.limit() + " are in use";
        return bytes.canEverFit(Math.max(needed, pieceSize))
                ? InferenceException.overloaded(problem, RETRY_AFTER)
                : new InferenceException(
                        ErrorCode.UNAVAILABLE, // and there never will be
                        problem + ". Use --tensor-memory-pool-byte-size to increase the limit.");
    }
}
