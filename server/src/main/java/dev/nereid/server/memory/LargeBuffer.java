package dev.nereid.server.memory;

import dev.nereid.api.TensorBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/** A buffer with an arena of its own, freed when it is given back. The memory is the holder's. */
final class LargeBuffer implements TensorBuffer {
    private final Arena arena;
    private final MemorySegment segment;
    private final AtomicLong inUse;
    private final AtomicBoolean closed = new AtomicBoolean();

    LargeBuffer(Arena arena, MemorySegment segment, AtomicLong inUse) {
        this.arena = arena;
        this.segment = segment;
        this.inUse = inUse;
    }

    @Override
    public MemorySegment segment() {
        return segment;
    }

    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            throw new IllegalStateException(
                    "buffer: " + segment.byteSize() + " bytes, closed before (expected: closed once)");
        }
        inUse.addAndGet(-segment.byteSize());
        arena.close();
    }
}
