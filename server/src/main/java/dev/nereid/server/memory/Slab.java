package dev.nereid.server.memory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * One arena that holds up to 64 pieces of one size. Guarded by the lock of its size class, except the memory itself,
 * which belongs to the holder of the piece.
 */
final class Slab {
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
            memory = arena.allocate(pieceSize * pieces, SizeClasses.ALIGNMENT);
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
