package dev.nereid.scheduler.oracle;

import static java.util.Objects.requireNonNull;

import org.jspecify.annotations.Nullable;

/** A linked list of sequences, with the links in the sequences. Guarded by the lock of the sequences. */
final class SequenceList {
    private @Nullable LiveSequence first;
    private @Nullable LiveSequence last;
    private int size;

    @Nullable
    LiveSequence first() {
        return first;
    }

    int size() {
        return size;
    }

    /** Adds a sequence that is in no list, as the last one. */
    void add(LiveSequence sequence) {
        if (sequence.list != null) {
            throw new IllegalStateException("sequence: in another list (expected: in none)");
        }
        sequence.list = this;
        sequence.previous = last;
        if (last == null) {
            first = sequence;
        } else {
            last.next = sequence;
        }
        last = sequence;
        size++;
    }

    /** Removes a sequence, if it is in this list; returns whether it was. */
    boolean remove(LiveSequence sequence) {
        if (sequence.list != this) {
            return false;
        }
        if (sequence.previous == null) {
            first = sequence.next;
        } else {
            sequence.previous.next = sequence.next;
        }
        if (sequence.next == null) {
            last = sequence.previous;
        } else {
            sequence.next.previous = sequence.previous;
        }
        sequence.previous = null;
        sequence.next = null;
        sequence.list = null;
        size--;
        return true;
    }

    /** Removes and returns the first sequence. Called only if there is one. */
    LiveSequence poll() {
        LiveSequence polled = requireNonNull(first);
        remove(polled);
        return polled;
    }
}
