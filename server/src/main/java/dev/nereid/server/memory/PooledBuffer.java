package dev.nereid.server.memory;

import dev.nereid.api.memory.TensorBuffer;
import java.lang.foreign.MemorySegment;

/**
 * A piece of a slab that is in use. The memory belongs to the holder; the flag that it was closed is guarded by its
 * class.
 */
final class PooledBuffer implements TensorBuffer {
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
