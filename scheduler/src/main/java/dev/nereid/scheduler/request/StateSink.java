package dev.nereid.scheduler.request;

import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.memory.StateBuffer;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import org.jspecify.annotations.Nullable;

/** Receives the state updates of one sequence from an execution. Called by the thread that ends the execution. */
public interface StateSink {
    /** Returns the specification of a state; {@code null} if the model has no such state. Called by any thread. */
    @Nullable
    StateSpec state(String output);

    /**
     * Returns the present value of a state if its update begins with that value
     * ({@code use_same_buffer_for_input_output}).
     *
     * @return {@code null} for any other state
     */
    default @Nullable Tensor present(String output) {
        return null;
    }

    /** Returns whether an input is the present value of a state. */
    default boolean isState(String input) {
        return false;
    }

    /** Returns the buffer in which the present value of a state lies beside others; {@code null} for none. */
    default @Nullable StateBuffer buffer(String input) {
        return null;
    }

    /** Counts present values that were copied: to join them with others, or to begin an update with them. */
    default void copied(int values) {}

    /**
     * Stores an update of a state, after an execution in which the request did not fail. Must not throw. It replaces
     * the present value and leaves its memory as it is: outputs may lie there ({@link Executable#memory}).
     *
     * @param memory keeps the value alive; the caller's reference is taken over
     */
    void store(String output, Tensor value, ReferenceCountedMemory memory);

    /**
     * Stores an update of a state that lies beside updates of other sequences. Otherwise as
     * {@link #store(String, Tensor, ReferenceCountedMemory)}.
     *
     * @param row the place in the buffer of the batch
     */
    default void store(String output, Tensor value, ReferenceCountedMemory memory, StateBuffer.Row row) {
        store(output, value, memory);
    }
}
