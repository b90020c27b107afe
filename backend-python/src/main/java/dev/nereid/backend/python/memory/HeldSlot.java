package dev.nereid.backend.python.memory;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;

/** A tensor of Python that the server reads, of {@link SharedMemory#hold}. Safe for use by any thread. */
public final class HeldSlot {
    private final SharedMemory owner;
    private final Segment segment;
    private final int index;
    private final MemorySegment data;
    private final AtomicBoolean released = new AtomicBoolean();

    HeldSlot(SharedMemory owner, Segment segment, int index, long size) {
        this.owner = owner;
        this.segment = segment;
        this.index = index;
        data = segment.memory.asSlice(index * segment.slotSize, size);
    }

    /**
     * Returns the data of the tensor. Python may change it at any time.
     *
     * @return memory of the global scope with the size of the tensor, for any thread; it must not be used after {@link #release}
     * @throws IllegalStateException if the slot has been released
     */
    public MemorySegment data() {
        if (released.get()) {
            throw new IllegalStateException("slot: released (expected: data is read before)");
        }
        return data;
    }

    /** Ends the use; after the last one the slot is Python's, or free. Never blocks. Later calls do nothing. */
    public void release() {
        if (released.compareAndSet(false, true)) {
            owner.endHold(segment, index);
        }
    }
}
