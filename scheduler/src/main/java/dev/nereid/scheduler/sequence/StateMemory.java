package dev.nereid.scheduler.sequence;

import dev.nereid.api.NamedTensor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** The states of a model, and the bytes that its sequences hold. Immutable except for the bytes; used by any thread. */
final class StateMemory {
    private static final int ALIGNMENT = 64;

    private final List<InitialState> states;
    private final Map<String, Integer> indexes = new HashMap<>();
    private final List<TensorSpec> outputs = new ArrayList<>();
    private final List<NamedTensor> initial = new ArrayList<>();
    private final AtomicLong bytes = new AtomicLong();

    StateMemory(List<InitialState> states) {
        this.states = states;
        for (int i = 0; i < states.size(); i++) {
            InitialState state = states.get(i);
            indexes.put(state.spec().outputName(), i);
            outputs.add(TensorSpec.of(
                    state.spec().outputName(), state.spec().type(), state.spec().dims()));
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

    @Nullable
    TensorSpec output(String name) {
        int index = index(name);
        return index < 0 ? null : outputs.get(index);
    }

    /** Returns a state at the start of a sequence, as an input. */
    NamedTensor initial(int index) {
        return initial.get(index);
    }

    /** Returns whether the new value of a state begins with the present one. */
    boolean isSameBuffer(int index) {
        return states.get(index).spec().sameBuffer();
    }

    /** Adds to the bytes that are held, or subtracts from them. */
    void count(long added) {
        bytes.addAndGet(added);
    }

    /** Returns the bytes of the states that are held. */
    long bytes() {
        return bytes.get();
    }

    /** Returns the states of a null request: zeros, or empty texts, in the shapes of another request. */
    List<NamedTensor> zeros(List<NamedTensor> like) {
        List<NamedTensor> zeros = new ArrayList<>(like.size());
        for (NamedTensor state : like) {
            Tensor value = state.tensor();
            long size = value.type() == DataType.BYTES
                    ? Integer.BYTES * value.shape().elementCount()
                    : value.byteSize();
            zeros.add(new NamedTensor(
                    state.name(),
                    Tensor.of(
                            value.type(),
                            value.shape(),
                            Arena.ofAuto().allocate(size, ALIGNMENT).asReadOnly())));
        }
        return zeros;
    }
}
