package dev.nereid.scheduler.oracle;

import java.util.ArrayList;
import org.jspecify.annotations.Nullable;

/** The slots of one instance, each with a sequence or free. Guarded by the lock of the sequences. */
final class Slots {
    private final int capacity;

    /** The sequences of the slots that were ever used. */
    private final ArrayList<@Nullable LiveSequence> sequences = new ArrayList<>(0);

    /** The lowest free slot, or less. */
    private int hint;

    private int used;

    Slots(int capacity) {
        this.capacity = capacity;
    }

    int capacity() {
        return capacity;
    }

    int used() {
        return used;
    }

    /** Returns a number that is above all slots with a sequence. */
    int limit() {
        return sequences.size();
    }

    /** Returns the sequence of a slot below the limit; {@code null} if the slot is free. */
    @Nullable
    LiveSequence get(int slot) {
        return sequences.get(slot);
    }

    /** Returns the lowest free slot; the capacity if none is free. */
    int lowestFree() {
        while (hint < sequences.size() && sequences.get(hint) != null) {
            hint++;
        }
        return hint;
    }

    /** Gives the lowest free slot to a sequence. Called only if there is one. */
    int occupy(LiveSequence sequence) {
        int slot = lowestFree();
        if (slot >= capacity) {
            throw new IllegalStateException("slots: " + used + " of " + capacity + " (expected: one is free)");
        }
        if (slot == sequences.size()) {
            sequences.add(sequence);
        } else {
            sequences.set(slot, sequence);
        }
        used++;
        return slot;
    }

    void vacate(int slot, LiveSequence sequence) {
        if (sequences.get(slot) != sequence) {
            throw new IllegalStateException("slot " + slot + ": of another sequence (expected: of this one)");
        }
        sequences.set(slot, null);
        used--;
        hint = Math.min(hint, slot);
        while (!sequences.isEmpty() && sequences.getLast() == null) {
            sequences.removeLast();
        }
    }
}
