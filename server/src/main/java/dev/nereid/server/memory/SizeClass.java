package dev.nereid.server.memory;

import dev.nereid.api.memory.TensorBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The slabs and buffers of one size. Guarded by its lock, under which nothing is allocated, closed or called.
 *
 * <p>Sizes grow in steps of at most a quarter. The first are 64, 128, 192 and 256 bytes, then four to each power of two.
 *
 * <p>Invariant: {@code withFreePieces} is the first of a list of exactly the slabs that have a free piece. A slab
 * leaves the list with its last free piece and returns with the first one freed.
 */
final class SizeClass {
    /** The alignment of every buffer, in bytes: a cache line, and the widest vector register. */
    static final long ALIGNMENT = 64;

    /** Sizes up to here grow by {@link #ALIGNMENT}. Beyond, a quarter of a power of two is a multiple of it. */
    private static final int LINEAR_LOG = 8;

    private static final int LINEAR_CLASSES = 4;
    private static final int STEPS_LOG = 2;

    /** The approximate size in bytes of slabs that small pieces share. Larger pieces have a slab each. */
    private static final long SLAB_BYTES = 256L << 10;

    /**
     * How often to try before sleeping. The lock is held for some ten nanoseconds, a sleep costs a thousand times as
     * much.
     */
    private static final int SPINS = 100;

    /** Larger pieces do not share slabs. */
    static final long MAX_PIECE = SLAB_BYTES / 2;

    private final long pieceSize;
    private final int piecesPerSlab;
    private final PoolBytes bytes;
    private final boolean poisoned;
    private final ReentrantLock lock = new ReentrantLock();

    private @Nullable Slab withFreePieces; // guarded by lock

    /** Returns the index of the smallest class that holds {@code byteSize} bytes. */
    static int indexOf(long byteSize) {
        if (byteSize <= 1L << LINEAR_LOG) {
            return (int) (Math.max(byteSize - 1, 0) / ALIGNMENT);
        }
        long last = byteSize - 1;
        int log = 63 - Long.numberOfLeadingZeros(last);
        int step = (int) (last >>> (log - STEPS_LOG)) & ((1 << STEPS_LOG) - 1);
        return LINEAR_CLASSES + ((log - LINEAR_LOG) << STEPS_LOG) + step;
    }

    /** Returns the size of the buffers of a class, in bytes. */
    static long sizeOf(int index) {
        if (index < LINEAR_CLASSES) {
            return (index + 1) * ALIGNMENT;
        }
        int log = LINEAR_LOG + ((index - LINEAR_CLASSES) >> STEPS_LOG);
        long step = ((index - LINEAR_CLASSES) & ((1 << STEPS_LOG) - 1)) + 1L;
        return (1L << log) + (step << (log - STEPS_LOG));
    }

    SizeClass(long pieceSize, PoolBytes bytes, boolean poisoned) {
        this.pieceSize = pieceSize;
        this.piecesPerSlab = Math.clamp(SLAB_BYTES / pieceSize, 1, Slab.MAX_PIECES);
        this.bytes = bytes;
        this.poisoned = poisoned;
    }

    /** Returns the size of a slab, in bytes. */
    long slabSize() {
        return pieceSize * piecesPerSlab;
    }

    /** Takes a free piece, if there is one. Its bytes were added to the total in use by the caller. */
    @Nullable
    PooledBuffer take(long byteSize) {
        spinThenLock();
        try {
            Slab slab = withFreePieces;
            if (slab != null) {
                int piece = slab.take();
                if (slab.isFull()) {
                    unlink(slab);
                }
                bytes.idle(-pieceSize);
                return new PooledBuffer(this, slab, piece, slab.piece(piece, byteSize));
            }
        } finally {
            lock.unlock();
        }
        return null;
    }

    /** Takes a piece back. The slab is closed if it is idle as a whole and the pool has enough without it. */
    void release(PooledBuffer buffer, Slab slab, int piece) {
        boolean surplus;
        spinThenLock();
        try {
            buffer.markClosed();
            if (poisoned) {
                buffer.segment().fill(TensorPool.POISON);
            }
            boolean wasFull = slab.isFull();
            slab.release(piece);
            if (wasFull) {
                link(slab);
            }
            bytes.idle(pieceSize);
            surplus = slab.isIdle() && bytes.exceedsIdleLimit();
            if (surplus) {
                unlink(slab);
                bytes.idle(-slab.byteSize());
            }
        } finally {
            lock.unlock();
        }
        bytes.use(-buffer.byteSize());
        if (surplus) {
            close(slab);
        }
    }

    /** Closes slabs of which all pieces are free, until enough is freed; returns the freed bytes. */
    long closeIdle(long target) {
        List<Slab> unused = new ArrayList<>();
        long freed = 0;
        spinThenLock();
        try {
            Slab slab = withFreePieces;
            while (slab != null && freed < target) {
                Slab next = slab.next;
                if (slab.isIdle()) {
                    unused.add(slab);
                    unlink(slab);
                    bytes.idle(-slab.byteSize());
                    freed += slab.byteSize();
                }
                slab = next;
            }
        } finally {
            lock.unlock();
        }
        unused.forEach(this::close);
        return freed;
    }

    private void close(Slab slab) {
        slab.close();
        bytes.free(slab.byteSize());
    }

    /** Takes a piece of a new slab, which the caller counted as held. */
    PooledBuffer takeOfNewSlab(long byteSize) {
        Slab slab = Slab.create(pieceSize, piecesPerSlab);
        int piece = slab.take();
        PooledBuffer buffer = new PooledBuffer(this, slab, piece, slab.piece(piece, byteSize));
        bytes.idle(slab.byteSize() - pieceSize);
        spinThenLock();
        try {
            link(slab);
        } finally {
            lock.unlock();
        }
        return buffer;
    }

    private void spinThenLock() {
        for (int i = 0; i < SPINS; i++) {
            if (lock.tryLock()) {
                return;
            }
            Thread.onSpinWait();
        }
        lock.lock();
    }

    private void link(Slab slab) {
        Slab first = withFreePieces;
        slab.next = first;
        if (first != null) {
            first.previous = slab;
        }
        withFreePieces = slab;
    }

    private void unlink(Slab slab) {
        Slab before = slab.previous;
        Slab after = slab.next;
        if (before == null) {
            withFreePieces = after;
        } else {
            before.next = after;
        }
        if (after != null) {
            after.previous = before;
        }
        slab.previous = null;
        slab.next = null;
    }

    /**
     * A piece of a slab that is in use. The memory belongs to the holder; the flag that it was closed is guarded by its
     * class.
     */
    static final class PooledBuffer implements TensorBuffer {
        private final SizeClass owner;
        private final Slab slab;
        private final int piece;
        private final MemorySegment segment;
        private boolean closed; // guarded by owner's lock

        PooledBuffer(SizeClass owner, Slab slab, int piece, MemorySegment segment) {
            this.owner = owner;
            this.slab = slab;
            this.piece = piece;
            this.segment = segment;
        }

        @Override
        public MemorySegment segment() {
            return segment;
        }

        @Override
        public void close() {
            owner.release(this, slab, piece);
        }

        long byteSize() {
            return segment.byteSize();
        }

        /** Called by the owner under its lock. */
        void markClosed() {
            if (closed) {
                throw new IllegalStateException(
                        "buffer: " + segment.byteSize() + " bytes, closed before (expected: closed once)");
            }
            closed = true;
        }
    }

    /**
     * One arena that holds up to 64 pieces of one size. Guarded by the lock of its size class, except the memory itself,
     * which belongs to the holder of the piece.
     */
    static final class Slab {
        /** One bit of a {@code long} for each piece. */
        static final int MAX_PIECES = Long.SIZE;

        private final Arena arena;
        private final MemorySegment memory;
        private final long pieceSize;
        private final long allFree;
        private long free;

        /** Neighbors in the list of slabs with a free piece. */
        @Nullable
        Slab previous;

        @Nullable
        Slab next;

        private Slab(Arena arena, MemorySegment memory, long pieceSize, int pieces) {
            this.arena = arena;
            this.memory = memory;
            this.pieceSize = pieceSize;
            allFree = -1L >>> (MAX_PIECES - pieces);
            free = allFree;
        }

        static Slab create(long pieceSize, int pieces) {
            Arena arena = Arena.ofShared();
            MemorySegment memory = null;
            try {
                memory = arena.allocate(pieceSize * pieces, ALIGNMENT);
            } finally {
                if (memory == null) {
                    arena.close();
                }
            }
            return new Slab(arena, memory, pieceSize, pieces);
        }

        /** Takes a free piece, of which there must be one, and returns its number. */
        int take() {
            int piece = Long.numberOfTrailingZeros(free);
            free &= free - 1;
            return piece;
        }

        void release(int piece) {
            free |= 1L << piece;
        }

        boolean isFull() {
            return free == 0;
        }

        boolean isIdle() {
            return free == allFree;
        }

        MemorySegment piece(int piece, long byteSize) {
            return memory.asSlice(piece * pieceSize, byteSize);
        }

        long byteSize() {
            return memory.byteSize();
        }

        void close() {
            arena.close();
        }
    }
}
