package dev.nereid.backend.python.memory;

import dev.nereid.backend.python.frame.FrameException;
import java.lang.foreign.MemorySegment;

/**
 * A segment of shared memory and the state of each of its slots. Guarded by the lock of {@link SharedMemory}, except for the
 * final fields.
 *
 * <p>Slots of incoming segments are given out here: the server writes a tensor, Python has it until it releases the slot, and
 * the slot is free when no output is read from it either. Slots of outgoing segments are given out by Python: they are free
 * here unless an output is read.
 */
final class Segment {
    private static final byte FREE = 0;
    /** Incoming: the server writes the tensor. */
    private static final byte WRITTEN = 1;
    /** Incoming: Python may read the slot, and name it. */
    private static final byte SENT = 2;
    /** Python has released the slot, or has given it out; the server reads it. */
    private static final byte READ = 3;

    private static final long NOT_IDLE = -1;

    /** The slot that the first {@link #take} of a segment gives out. */
    static final int FIRST_SLOT = 0;

    /** The turn of the slot that the first {@link #take} of a segment gives out. */
    static final int FIRST_TURN = 1;

    final int number;
    final boolean outgoing;
    final long slotSize;
    final long byteSize;
    final SegmentFile file;
    final MemorySegment memory;

    private final byte[] states;
    private final int[] readers;
    /** How often a slot has been given out, to know a later use of it. */
    private final int[] turns;
    /** Incoming: a stack of the free slots. */
    private final int[] free;

    private int freeSlots;
    /** Uses of the memory by code of the server, each of which keeps it mapped. */
    private long uses;

    private boolean opened;
    private long taken;
    private long takenWhenIdle = NOT_IDLE;
    private long idleSince;

    Segment(int number, boolean outgoing, long slotSize, SegmentFile file) {
        this.number = number;
        this.outgoing = outgoing;
        this.slotSize = slotSize;
        this.file = file;
        this.memory = file.memory();
        this.byteSize = memory.byteSize();
        int slots = (int) (byteSize / slotSize);
        states = new byte[slots];
        readers = new int[slots];
        turns = new int[outgoing ? 0 : slots];
        free = new int[outgoing ? 0 : slots];
        for (int i = 0; i < free.length; i++) {
            free[i] = slots - 1 - i;
        }
        freeSlots = free.length;
    }

    /** Returns whether code of the server reads or writes the memory. */
    boolean isUsed() {
        return uses > 0;
    }

    // Incoming slots

    boolean hasFreeSlot() {
        return freeSlots > 0;
    }

    /** Gives a free slot out, to be written. */
    int take() {
        int index = free[--freeSlots];
        states[index] = WRITTEN;
        turns[index]++;
        taken++;
        uses++;
        return index;
    }

    /** Returns the number of the current use of a slot. */
    int turn(int index) {
        return turns[index];
    }

    /** Ends the writing of a slot. From now on it belongs to Python. */
    void written(int index) {
        states[index] = SENT;
        uses--;
    }

    /** Frees a slot for which no frame was sent. Does nothing if Python has released it nevertheless. */
    void discard(int index, int turn) {
        if (turns[index] == turn) {
            if (states[index] == WRITTEN) {
                uses--;
                states[index] = SENT;
            }
            if (states[index] == SENT) {
                endLent(index);
            }
        }
    }

    /** Ends Python's use of a slot. */
    void released(long offset) {
        int index = index("offset of a released slot", offset);
        if (states[index] != SENT) {
            throw new FrameException("offset of a released slot: " + offset + " of segment " + number
                    + " (expected: a slot that this process has)");
        }
        opened = true;
        endLent(index);
    }

    private void endLent(int index) {
        if (readers[index] > 0) {
            states[index] = READ;
        } else {
            free(index);
        }
    }

    private void free(int index) {
        states[index] = FREE;
        free[freeSlots++] = index;
    }

    // Slots that are read

    /** Begins a use of a tensor that Python has named, and returns the slot. */
    int hold(String what, long offset, long size) {
        if (offset < 0 || size < 0 || offset > byteSize || size > byteSize - offset) {
            throw new FrameException(what + ": " + Long.toUnsignedString(size) + " bytes at "
                    + Long.toUnsignedString(offset) + " of segment " + number + " (expected: within its " + byteSize
                    + " bytes)");
        }
        int index = index(what, offset);
        if (size > slotSize) {
            throw new FrameException(
                    what + ": " + size + " bytes in a slot (expected: at most " + slotSize + ", the size of the slot)");
        }
        if (outgoing && states[index] != FREE) {
            throw new FrameException(what + ": offset " + offset + " of segment " + number
                    + " (expected: a slot that is not in use by another tensor)");
        }
        if (!outgoing && states[index] != SENT) {
            throw new FrameException(what + ": offset " + offset + " of segment " + number
                    + " (expected: a slot that this process has)");
        }
        if (outgoing) {
            states[index] = READ;
        } else {
            opened = true;
        }
        readers[index]++;
        uses++;
        return index;
    }

    /** Ends a use of a tensor that Python has named. */
    void endHold(int index) {
        uses--;
        readers[index]--;
        if (outgoing) {
            states[index] = FREE;
        } else if (readers[index] == 0 && states[index] == READ) {
            free(index);
        }
    }

    private int index(String what, long offset) {
        if (offset < 0 || offset >= states.length * slotSize || offset % slotSize != 0) {
            throw new FrameException(what + ": offset " + Long.toUnsignedString(offset) + " of segment " + number
                    + " (expected: the start of one of its slots)");
        }
        return (int) (offset / slotSize);
    }

    // The end of incoming segments

    /**
     * Returns whether the segment may be removed: no slot is in use, and Python has opened the file, so that the number of the
     * descriptor may be used for another one.
     */
    boolean isRemovable() {
        return !outgoing && opened && freeSlots == states.length;
    }

    /** Returns for how long the segment has been removable, as far as calls of this method have seen. */
    long idleNanos(long now) {
        if (!isRemovable()) {
            takenWhenIdle = NOT_IDLE;
            return 0;
        }
        if (takenWhenIdle != taken) {
            takenWhenIdle = taken;
            idleSince = now;
        }
        return now - idleSince;
    }
}
