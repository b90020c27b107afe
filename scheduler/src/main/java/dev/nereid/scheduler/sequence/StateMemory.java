package dev.nereid.scheduler.sequence;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.memory.DeviceCopies;
import dev.nereid.scheduler.memory.StateBuffer;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The states of a model, and the memory of its sequences. Used by any thread.
 *
 * <p>Values of one batch share a buffer. When half of its sequences have other values, the values of the others are
 * moved to separate memory. Buffers with mostly rows of null requests stay, as many of the latest as there are
 * instances: a batch of the same slots gets such a buffer without a copy.
 */
final class StateMemory {
    private static final int ALIGNMENT = 64;

    private final List<InitialState> states;
    private final Map<String, Integer> indexes = new HashMap<>();
    private final List<NamedTensor> initial = new ArrayList<>();
    private final Map<String, Integer> indexesOfInputs = new HashMap<>();
    private final TensorMemory memory;
    private final AtomicLong bytes = new AtomicLong();
    private final AtomicLong copies;
    private final AtomicInteger instances = new AtomicInteger();

    /** The zeros that null requests got last, by state. */
    private final AtomicReferenceArray<@Nullable Tensor> zeros;

    private final ReentrantLock lock = new ReentrantLock();

    /** The buffers with few sequences that are not in use, the oldest first. */
    @GuardedBy("lock")
    private final Deque<StateBuffer> sparse = new ArrayDeque<>(1);

    /**
     * Begins without sequences.
     *
     * @param memory allocates values that are moved
     * @param copies counts values that are copied: joined with others, the beginning of an update, or moved out of a
     *     buffer
     */
    StateMemory(List<InitialState> states, TensorMemory memory, AtomicLong copies) {
        this.states = states;
        this.memory = memory;
        this.copies = copies;
        this.zeros = new AtomicReferenceArray<>(states.size());
        for (int i = 0; i < states.size(); i++) {
            InitialState state = states.get(i);
            indexes.put(state.spec().outputName(), i);
            indexesOfInputs.put(state.spec().inputName(), i);
            initial.add(new NamedTensor(state.spec().inputName(), state.value()));
        }
    }

    int size() {
        return states.size();
    }

    /** Returns the index of a state; below 0 if there is none of that output. */
    int index(String output) {
        return indexes.getOrDefault(output, -1);
    }

    /** Returns the index of a state; below 0 if no state is that input. */
    int indexOfInput(String input) {
        return indexesOfInputs.getOrDefault(input, -1);
    }

    @Nullable
    StateSpec output(String name) {
        int index = index(name);
        return index < 0 ? null : states.get(index).spec();
    }

    /** Returns a state at the start of a sequence, as an input. */
    NamedTensor initial(int index) {
        return initial.get(index);
    }

    /** Returns whether an update of a state begins with the present value. */
    boolean isSameBuffer(int index) {
        return states.get(index).spec().sameBuffer();
    }

    /** Adds to the bytes that are held, or subtracts from them. */
    void count(long added) {
        bytes.addAndGet(added);
    }

    long bytes() {
        return bytes.get();
    }

    void copied(int values) {
        copies.addAndGet(values);
    }

    /** Allows one more buffer with few sequences. */
    void addInstance() {
        instances.incrementAndGet();
    }

    /** Allows one buffer with few sequences less. */
    void removeInstance() {
        instances.decrementAndGet();
    }

    /**
     * Copies a value: on the device where it lies, or on the host.
     *
     * @throws dev.nereid.api.InferenceException if there is no memory, or a device failed
     */
    TensorBuffer copy(Tensor value) {
        MemoryPlace place = value.place();
        TensorBuffer buffer = memory.allocate(value.byteSize(), place.isHost() ? MemoryPlace.HOST : place);
        return DeviceCopies.filled(buffer, data -> DeviceCopies.copy(value, buffer.place(), data, memory));
    }

    /** Called without a lock when a sequence has another value than the one in a buffer. */
    void left(StateBuffer buffer) {
        if (buffer.isLeft()) {
            buffer.moveOut();
        }
    }

    /** Called without a lock when a sequence with a value in a buffer is not in use any more. */
    void endUse(StateBuffer buffer) {
        if (buffer.isLeft()) {
            buffer.moveOut();
        } else if (buffer.isSparse()) {
            keep(buffer);
            for (StateBuffer oldest = tooMany(); oldest != null; oldest = tooMany()) {
                if (oldest.isSparse()) {
                    oldest.moveOut();
                }
            }
        }
    }

    /** Keeps a buffer with few sequences. */
    private void keep(StateBuffer buffer) {
        lock.lock();
        try {
            sparse.removeIf(other -> other == buffer || other.isEmpty());
            sparse.add(buffer);
        } finally {
            lock.unlock();
        }
    }

    /** Removes the oldest of too many buffers with few sequences; returns {@code null} if there are not too many. */
    private @Nullable StateBuffer tooMany() {
        lock.lock();
        try {
            return sparse.size() > instances.get() ? sparse.poll() : null;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the states of a null request: zeros, or empty texts, in the shapes of another request. */
    List<NamedTensor> zeros(List<NamedTensor> like) {
        List<NamedTensor> all = new ArrayList<>(like.size());
        for (int i = 0; i < like.size(); i++) {
            Tensor value = like.get(i).tensor();
            Tensor zero = zeros.get(i);
            if (zero == null || !zero.shape().equals(value.shape())) {
                zero = zero(states.get(i).spec().inputName(), value);
                zeros.set(i, zero);
            }
            all.add(new NamedTensor(like.get(i).name(), zero));
        }
        return all;
    }

    private static Tensor zero(String input, Tensor like) {
        long size = like.type() == DataType.BYTES ? Integer.BYTES * like.shape().elementCount() : like.byteSize();
        return Tensor.of(
                input,
                like.type(),
                like.shape(),
                Arena.ofAuto().allocate(size, ALIGNMENT).asReadOnly(),
                MemoryPlace.HOST);
    }
}
