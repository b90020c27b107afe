package dev.nereid.scheduler.sequence;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;

/**
 * A state of a model's sequences, with its value at the start of a sequence. Immutable.
 *
 * @param spec its names, type and dimensions
 * @param value the value, of one item if the model batches; in memory that is never changed and outlives the
 *     scheduler
 */
public record InitialState(StateSpec spec, Tensor value) {
    public InitialState {
        requireNonNull(spec, "spec");
        requireNonNull(value, "value");
    }
}
