package dev.nereid.scheduler.memory;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A buffer with the values of one state of a batch, one row per request. Safe for use by any thread.
 *
 * <p>The next batch gets rows that lie in order as one tensor, without a copy. A row belongs to a sequence until the
 * sequence has another value; the rows of null requests belong to none, and hold zeros. The references of the sequences
 * keep the memory alive; this class counts rows, so that a few rows do not keep a large buffer.
 */
public final class StateBuffer {
    /** A sequence with a value in a buffer. */
    public interface Member {
        /** Moves its value to separate memory, unless it is in use. Called by any thread, without a lock. */
        void moveOut(StateBuffer from);
    }

    /** The value of one sequence. */
    public record Row(StateBuffer buffer, int index) {
        /** Adds a sequence, while it is in use; returns whether it is the first one. */
        public boolean add(Member member) {
            return buffer.add(index, member);
        }

        /** Removes the sequence; returns whether it was the last one. */
        public boolean remove(boolean used) {
            return buffer.remove(index, used);
        }
    }

    /** Values that lie in order in the buffer; {@code copied} of them were copied to rows of null requests. */
    public record InOrder(MemorySegment data, MemoryPlace place, int copied) {}

    private final Tensor whole;
    private final int rows;
    private final BitSet spare;
    private final AtomicBoolean spareTaken = new AtomicBoolean();
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final @Nullable Member[] members;

    /** The number of sequences that were added, have a row, and are in use. */
    @GuardedBy("lock")
    private int added;

    @GuardedBy("lock")
    private int live;

    @GuardedBy("lock")
    private int used;

    /**
     * Describes a buffer without sequences.
     *
     * @param whole the values of a batch
     * @param rows their number
     * @param spare the rows of null requests, if they hold zeros and may be overwritten; not to be changed any more
     */
    public StateBuffer(Tensor whole, int rows, BitSet spare) {
        this.whole = whole;
        this.rows = rows;
        this.members = new @Nullable Member[rows];
        this.spare = spare;
    }

    public long byteSize() {
        return whole.byteSize();
    }

    /**
     * Finds the values of a batch where they lie. Values of other sequences are copied to rows of null requests, for
     * one batch at most.
     *
     * @param values the values, all of one type and of the same dimensions
     * @param isNull the indexes of null requests; their values are zeros
     * @param inPlace the index of a value that lies in this buffer
     * @return {@code null} if they do not lie in order
     * @throws dev.nereid.api.InferenceException if a device failed at a copy
     */
    public @Nullable InOrder inOrder(List<Tensor> values, BitSet isNull, int inPlace, TensorMemory memory) {
        MemorySegment data = whole.data();
        long start = values.get(inPlace).data().address() - data.address();
        for (int i = 0; i < inPlace; i++) {
            start -= values.get(i).byteSize();
        }
        boolean usesSpare = false;
        long at = start;
        for (int i = 0; i < values.size(); i++) {
            Tensor value = values.get(i);
            if (value.data().address() != data.address() + at) {
                if (!isSpare(at, value.byteSize())) {
                    return null;
                }
                usesSpare = true;
            }
            at += value.byteSize();
        }
        if (start < 0 || at > data.byteSize() || (usesSpare && !spareTaken.compareAndSet(false, true))) {
            return null;
        }
        int copied = usesSpare ? fill(values, isNull, start, memory) : 0;
        return new InOrder(data.asSlice(start, at - start), whole.place(), copied);
    }

    private boolean isSpare(long at, long byteSize) {
        long size = whole.byteSize() / rows;
        return size > 0 && byteSize == size && at >= 0 && at % size == 0 && spare.get((int) (at / size));
    }

    private int fill(List<Tensor> values, BitSet isNull, long start, TensorMemory memory) {
        int copied = 0;
        long at = start;
        for (int i = 0; i < values.size(); i++) {
            Tensor value = values.get(i);
            if (!isNull.get(i) && value.data().address() != whole.data().address() + at) {
                DeviceCopies.copy(value, whole.place(), whole.data().asSlice(at, value.byteSize()), memory);
                copied++;
            }
            at += value.byteSize();
        }
        return copied;
    }

    private boolean add(int index, Member member) {
        lock.lock();
        try {
            members[index] = member;
            added++;
            live++;
            used++;
            return added == 1;
        } finally {
            lock.unlock();
        }
    }

    private boolean remove(int index, boolean inUse) {
        lock.lock();
        try {
            members[index] = null;
            live--;
            used -= inUse ? 1 : 0;
            return live == 0;
        } finally {
            lock.unlock();
        }
    }

    /** Records that a sequence is in use: its value stays where it is. */
    public void use() {
        lock.lock();
        try {
            used++;
        } finally {
            lock.unlock();
        }
    }

    /** Records that a sequence is not in use any more. */
    public void endUse() {
        lock.lock();
        try {
            used--;
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether no sequence has a row. */
    public boolean isEmpty() {
        lock.lock();
        try {
            return live == 0;
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether most rows belong to no sequence, and no sequence with a row is in use. */
    public boolean isSparse() {
        lock.lock();
        try {
            return used == 0 && live > 0 && live * 2 <= rows;
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether most of its sequences have other values now, and no other sequence is in use. */
    public boolean isLeft() {
        lock.lock();
        try {
            return used == 0 && live > 0 && live * 2 <= added;
        } finally {
            lock.unlock();
        }
    }

    /** Moves the values of all sequences to separate memory. Called without a lock. */
    public void moveOut() {
        List<Member> all = new ArrayList<>();
        lock.lock();
        try {
            for (Member member : members) {
                if (member != null) {
                    all.add(member);
                }
            }
        } finally {
            lock.unlock();
        }
        all.forEach(member -> member.moveOut(this));
    }
}
