package dev.nereid.scheduler.batch;

import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.memory.StateBuffer;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.StateSink;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The state updates of a request, or of a whole batch. Confined to the execution. */
final class StateUpdates {
    private final ModelScope model;
    private final @Nullable StateSink sink;
    private final int items;
    private final StateUpdate.Owner owner;
    private final List<StateUpdate> states = new ArrayList<>(1);

    /** Begins without updates of the items of a request or batch; {@code sink} is {@code null} without states. */
    StateUpdates(ModelScope model, @Nullable StateSink sink, int items, StateUpdate.Owner owner) {
        this.model = model;
        this.sink = sink;
        this.items = items;
        this.owner = owner;
    }

    /** Returns the state of an output, always the same object. */
    SequenceState state(String output) {
        StateUpdate found = find(output);
        if (found != null) {
            return found;
        }
        StateSpec spec = sink == null ? null : sink.state(output);
        if (spec == null) {
            throw unknown(output);
        }
        StateUpdate made = new StateUpdate(model, spec, items, owner);
        states.add(made);
        return made;
    }

    private BackendException unknown(String output) {
        List<StateSpec> known = model.settings()
                .sequenceBatching()
                .map(SequenceBatching::states)
                .orElse(List.of());
        String problem = sink == null
                ? "unable to add state '" + output + "'. State configuration is missing for model '"
                        + model.settings().name() + "'."
                : "state '" + output + "' is not a valid state name. (expected: one of "
                        + known.stream().map(StateSpec::outputName).toList() + ")";
        return new BackendException(ErrorCode.INVALID_ARGUMENT, problem);
    }

    /** Returns the state of an output; {@code null} if the backend did not ask for it. */
    @Nullable
    StateUpdate find(String output) {
        for (StateUpdate state : states) {
            if (state.output().equals(output)) {
                return state;
            }
        }
        return null;
    }

    /** Ends the writing of the values of a batch, before {@link #cut}. Those of null requests become zeros. */
    void written(BitSet unused) {
        for (StateUpdate state : states) {
            if (state.value() != null) {
                state.written(unused);
            }
        }
    }

    /**
     * Adds the state updates of a request to a list.
     *
     * @throws BackendException if byte strings are not framed
     */
    void cut(int firstItem, int count, List<Part> parts) {
        for (StateUpdate state : states) {
            if (state.value() != null) {
                parts.add(new Part(state.output(), state.part(firstItem, count), state.memory(), state.row(firstItem)));
            }
        }
    }

    boolean isWritten(String output) {
        StateUpdate found = find(output);
        return found != null && found.value() != null;
    }

    /**
     * An update of one state of one request. Valid until the updates end.
     *
     * @param memory keeps the value alive
     * @param row the place in the buffer of the batch; {@code null} for a separate value
     */
    record Part(String output, Tensor value, ReferenceCountedMemory memory, StateBuffer.@Nullable Row row) {
        void store(StateSink sink) {
            memory.retain();
            if (row == null) {
                sink.store(output, value, memory);
            } else {
                sink.store(output, value, memory, row);
            }
        }
    }

    /** Ends the use by the backend, and releases the values. */
    void end() {
        states.forEach(StateUpdate::end);
    }
}
