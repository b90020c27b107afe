package dev.nereid.cuda.memory;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;

/** A block of memory that is divided. Owned by its holder; safe for use by any thread. */
final class MemoryBlock implements TensorBuffer {
    private final String name;
    private final MemorySegment segment;
    private final MemoryPlace place;
    private final MemoryBlocks blocks;
    private final long offset;

    /** {@code true} after the only close of this block: a later block may have the same offset by then. */
    private final AtomicBoolean freed = new AtomicBoolean();

    /** Creates the buffer, with a name for errors; {@code blocks} get it back. */
    MemoryBlock(String name, MemorySegment segment, MemoryPlace place, MemoryBlocks blocks, long offset) {
        this.name = name;
        this.segment = segment;
        this.place = place;
        this.blocks = blocks;
        this.offset = offset;
    }

    @Override
    public MemorySegment segment() {
        return segment;
    }

    @Override
    public MemoryPlace place() {
        return place;
    }

    @Override
    public void close() {
        if (!freed.compareAndSet(false, true)) {
            throw new IllegalStateException(name + ": closed twice (expected: once)");
        }
        blocks.free(offset);
    }
}
