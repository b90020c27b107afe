package dev.nereid.backend.python.memory;

import java.lang.foreign.MemorySegment;

/**
 * Memory for one tensor that is sent to Python, of {@link SharedMemory#allocate}. For one thread at a time.
 *
 * <p>The server writes the tensor, calls {@link #written}, and sends a frame that names the slot once. Then the slot belongs to
 * Python. A slot that is not sent is ended by {@link #discard}. One of the two methods must be called: until then the memory
 * stays mapped.
 */
public final class IncomingSlot {
    private final SharedMemory owner;
    private final Segment segment;
    private final int index;
    private final int turn;
    private final MemorySegment data;
    private boolean written;
    private boolean discarded;

    IncomingSlot(SharedMemory owner, Segment segment, int index, int turn, long size) {
        this.owner = owner;
        this.segment = segment;
        this.index = index;
        this.turn = turn;
        data = segment.memory.asSlice(index * segment.slotSize, size);
    }

    /** Returns the number of the segment, for the frame. */
    public int segment() {
        return segment.number;
    }

    /** Returns where the slot begins in the segment, a multiple of 4096. */
    public long offset() {
        return index * segment.slotSize;
    }

    /**
     * Returns the memory of the slot, with the size that was asked for and any content.
     *
     * @return memory of the global scope; it must not be used after {@link #written} or {@link #discard}
     * @throws IllegalStateException if one of them has been called
     */
    public MemorySegment data() {
        if (written || discarded) {
            throw new IllegalStateException("slot: ended (expected: data is written before)");
        }
        return data;
    }

    /**
     * Ends the writing. Called after the last write, and before the frame that names the slot is sent. Never blocks. Later
     * calls do nothing.
     */
    public void written() {
        if (!written && !discarded) {
            written = true;
            owner.written(segment, index);
        }
    }

    /** Frees the slot, which no frame has named. Never blocks. Later calls do nothing. */
    public void discard() {
        if (!discarded) {
            discarded = true;
            owner.discard(segment, index, turn);
        }
    }
}
