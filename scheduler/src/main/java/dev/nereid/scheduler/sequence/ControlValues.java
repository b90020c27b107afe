package dev.nereid.scheduler.sequence;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.ControlInput;

/**
 * A control input with its values for false and true. Immutable.
 *
 * @param input its kind, name and type
 * @param falseBits its value for false: a number, or the bits of an FP32; of no effect for ids of sequences
 * @param trueBits its value for true, likewise
 */
public record ControlValues(ControlInput input, int falseBits, int trueBits) {
    public ControlValues {
        requireNonNull(input, "input");
    }

    boolean isId() {
        return input.kind() == ControlInput.Kind.SEQUENCE_CORRID;
    }
}
