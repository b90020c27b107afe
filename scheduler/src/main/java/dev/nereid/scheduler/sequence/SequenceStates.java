package dev.nereid.scheduler.sequence;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.StateSink;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The present states of one sequence. Used by one thread at a time: that which takes its next request, under the lock of
 * the sequences, and then that which ends its execution.
 *
 * <p>A new value takes the place of the present one without a copy: it lies where the backend wrote it.
 */
final class SequenceStates implements StateSink {
    private final StateMemory memory;
    private final @Nullable NamedTensor[] values;
    private final @Nullable ReferenceCountedMemory[] memories;

    SequenceStates(StateMemory memory) {
        this.memory = memory;
        this.values = new @Nullable NamedTensor[memory.size()];
        this.memories = new @Nullable ReferenceCountedMemory[memory.size()];
    }

    int size() {
        return values.length;
    }

    /** Returns a state as an input. */
    NamedTensor value(int index) {
        NamedTensor value = values[index];
        return value == null ? memory.initial(index) : value;
    }

    /** Returns the states as inputs. */
    List<NamedTensor> values() {
        List<NamedTensor> all = new ArrayList<>(values.length);
        for (int i = 0; i < values.length; i++) {
            all.add(value(i));
        }
        return all;
    }

    /** Returns what keeps a state alive; {@code null} for memory that is never freed. */
    @Nullable
    ReferenceCountedMemory memory(int index) {
        return memories[index];
    }

    /** Returns the shape of a state in the next execution. */
    private Shape shape(int index, boolean starts) {
        return (starts ? memory.initial(index) : value(index)).tensor().shape();
    }

    /**
     * Returns whether the states have the shapes of those of another sequence.
     *
     * @param starts whether the next request starts this sequence anew
     * @param otherStarts the same of the other one
     */
    boolean join(boolean starts, SequenceStates other, boolean otherStarts) {
        for (int i = 0; i < values.length; i++) {
            if (!shape(i, starts).equals(other.shape(i, otherStarts))) {
                return false;
            }
        }
        return true;
    }

    /**
     * Gives up the values: the sequence starts anew, or has ended.
     *
     * @param release releases their memory, which may run code of the backend
     */
    void reset(Consumer<ReferenceCountedMemory> release) {
        for (int i = 0; i < values.length; i++) {
            replace(i, null, null, release);
        }
    }

    private void replace(
            int index,
            @Nullable NamedTensor value,
            @Nullable ReferenceCountedMemory kept,
            Consumer<ReferenceCountedMemory> release) {
        NamedTensor before = values[index];
        ReferenceCountedMemory released = memories[index];
        values[index] = value;
        memories[index] = kept;
        memory.count((value == null ? 0 : value.tensor().byteSize())
                - (before == null ? 0 : before.tensor().byteSize()));
        if (released != null) {
            release.accept(released);
        }
    }

    @Override
    public @Nullable TensorSpec state(String output) {
        return memory.output(output);
    }

    @Override
    public @Nullable Tensor present(String output) {
        int index = memory.index(output);
        return index >= 0 && memory.isSameBuffer(index) ? value(index).tensor() : null;
    }

    @Override
    public void store(String output, Tensor value, ReferenceCountedMemory kept) {
        int index = memory.index(output);
        if (index < 0) {
            kept.release();
        } else {
            replace(index, new NamedTensor(memory.initial(index).name(), value), kept, ReferenceCountedMemory::release);
        }
    }
}
