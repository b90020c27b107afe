package dev.nereid.scheduler.sequence;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.memory.StateBuffer;
import dev.nereid.scheduler.request.StateSink;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds the present states of one sequence. Used by one thread at a time: the thread that takes its next request, under
 * the lock of the sequences, and then the thread that ends its execution. While no request is in execution, any thread
 * may move a value out of a buffer that few sequences share.
 *
 * <p>An update replaces the present value without a copy: it lies where the backend wrote it.
 */
final class SequenceStates implements StateSink, StateBuffer.Member {
    /**
     * One present value.
     *
     * @param memory keeps it alive
     * @param row its place beside values of other sequences; {@code null} for a separate buffer
     */
    private record Present(NamedTensor input, ReferenceCountedMemory memory, StateBuffer.@Nullable Row row) {}

    private static final Logger LOG = LoggerFactory.getLogger(SequenceStates.class);

    private final StateMemory memory;

    /** Held shortly, also under the lock of the sequences; no memory is freed or copied under it. */
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final @Nullable Present[] values;

    /** {@code true} if a request was taken, and its execution has not ended. */
    @GuardedBy("lock")
    private boolean used;

    SequenceStates(StateMemory memory) {
        this.memory = memory;
        this.values = new @Nullable Present[memory.size()];
    }

    /** Returns the states as inputs, which stay where they are until {@link #endUse}. */
    List<NamedTensor> use() {
        List<NamedTensor> all = new ArrayList<>(memory.size());
        lock.lock();
        try {
            for (int i = 0; i < values.length; i++) {
                Present value = values[i];
                all.add(value == null ? memory.initial(i) : value.input);
                if (value != null && value.row != null && !used) {
                    value.row.buffer().use();
                }
            }
            used = true;
        } finally {
            lock.unlock();
        }
        return all;
    }

    /** Ends the use by an execution; its updates are stored. */
    void endUse() {
        List<StateBuffer> buffers = new ArrayList<>(0);
        lock.lock();
        try {
            for (Present value : values) {
                if (value != null && value.row != null && used) {
                    value.row.buffer().endUse();
                    buffers.add(value.row.buffer());
                }
            }
            used = false;
        } finally {
            lock.unlock();
        }
        buffers.forEach(memory::endUse);
    }

    /** Returns the reference that keeps a state alive; {@code null} for memory that is never freed. */
    @Nullable
    ReferenceCountedMemory memory(int index) {
        Present value = present(index);
        return value == null ? null : value.memory;
    }

    private @Nullable Present present(int index) {
        lock.lock();
        try {
            return values[index];
        } finally {
            lock.unlock();
        }
    }

    private NamedTensor value(int index) {
        Present value = present(index);
        return value == null ? memory.initial(index) : value.input;
    }

    /** Returns the shape of a state in the next execution. */
    private Shape shape(int index, boolean starts) {
        return (starts ? memory.initial(index) : value(index)).tensor().shape();
    }

    /** Returns whether the states have the same shapes as those of another sequence; a start resets states. */
    boolean join(boolean starts, SequenceStates other, boolean otherStarts) {
        for (int i = 0; i < memory.size(); i++) {
            if (!shape(i, starts).equals(other.shape(i, otherStarts))) {
                return false;
            }
        }
        return true;
    }

    /** Gives up the values at a new start or the end. {@code release} frees memory, perhaps by code of the backend. */
    void reset(Consumer<Runnable> release) {
        for (int i = 0; i < memory.size(); i++) {
            Runnable rest = replace(i, null);
            if (rest != null) {
                release.accept(rest);
            }
        }
    }

    /** Replaces a value, and returns the action to be run without a lock; {@code null} for none. */
    private @Nullable Runnable replace(int index, @Nullable Present value) {
        lock.lock();
        try {
            Present before = values[index];
            values[index] = value;
            if (value != null) {
                memory.count(heldFrom(value));
            }
            if (before == null) {
                return null;
            }
            memory.count(-heldUntil(before));
            return () -> released(before);
        } finally {
            lock.unlock();
        }
    }

    /** Returns the bytes that are held from now on. A buffer is held as a whole. */
    @GuardedBy("lock")
    private long heldFrom(Present value) {
        if (value.row == null) {
            return value.input.tensor().byteSize();
        }
        return value.row.add(this) ? value.row.buffer().byteSize() : 0;
    }

    @GuardedBy("lock")
    private long heldUntil(Present value) {
        if (value.row == null) {
            return value.input.tensor().byteSize();
        }
        return value.row.remove(used) ? value.row.buffer().byteSize() : 0;
    }

    private void released(Present before) {
        before.memory.release();
        if (before.row != null) {
            memory.left(before.row.buffer());
        }
    }

    @Override
    public void moveOut(StateBuffer from) {
        for (int i = 0; i < memory.size(); i++) {
            Present value = present(i);
            if (value != null && value.row != null && value.row.buffer() == from && value.memory.tryRetain()) {
                try {
                    moveOut(i, value);
                } catch (InferenceException e) { // no memory: it stays there, and is counted there
                    return;
                } catch (RuntimeException e) { // such as memory that its backend has freed
                    LOG.atError()
                            .addKeyValue("state", value.input.name())
                            .setCause(e)
                            .log("state of a sequence not moved (state '{}')", value.input.name());
                } finally {
                    value.memory.release();
                }
            }
        }
    }

    @SuppressWarnings("ReferenceEquality") // Each execution stores a value of its own.
    private void moveOut(int index, Present value) {
        Tensor present = value.input.tensor();
        TensorBuffer buffer = memory.copy(present);
        Tensor copy = Tensor.of(value.input.name(), present.type(), present.shape(), buffer.segment(), buffer.place());
        Present moved = new Present(new NamedTensor(value.input.name(), copy), ReferenceCountedMemory.of(buffer), null);
        boolean isMoved;
        lock.lock();
        try {
            isMoved = !used && values[index] == value;
            if (isMoved) {
                values[index] = moved;
                memory.count(heldFrom(moved) - heldUntil(value));
            }
        } finally {
            lock.unlock();
        }
        if (isMoved) {
            memory.copied(1);
        }
        (isMoved ? value : moved).memory.release();
    }

    @Override
    public @Nullable StateSpec state(String output) {
        return memory.output(output);
    }

    @Override
    public boolean isState(String input) {
        return memory.indexOfInput(input) >= 0;
    }

    @Override
    public @Nullable StateBuffer buffer(String input) {
        int index = memory.indexOfInput(input);
        Present value = index < 0 ? null : present(index);
        return value == null || value.row == null ? null : value.row.buffer();
    }

    @Override
    public void copied(int copies) {
        memory.copied(copies);
    }

    @Override
    public @Nullable Tensor present(String output) {
        int index = memory.index(output);
        return index >= 0 && memory.isSameBuffer(index) ? value(index).tensor() : null;
    }

    @Override
    public void store(String output, Tensor value, ReferenceCountedMemory kept) {
        set(output, value, kept, null);
    }

    @Override
    public void store(String output, Tensor value, ReferenceCountedMemory kept, StateBuffer.Row row) {
        set(output, value, kept, row);
    }

    private void set(String output, Tensor value, ReferenceCountedMemory kept, StateBuffer.@Nullable Row row) {
        int index = memory.index(output);
        if (index < 0) {
            kept.release();
            return;
        }
        NamedTensor input = new NamedTensor(memory.initial(index).name(), value);
        Runnable rest = replace(index, new Present(input, kept, row));
        if (rest != null) {
            rest.run();
        }
    }
}
