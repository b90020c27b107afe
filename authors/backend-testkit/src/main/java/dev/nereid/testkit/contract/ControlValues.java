package dev.nereid.testkit.contract;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.Tensor;

/**
 * The two contents of a control input. Immutable.
 *
 * @param whenFalse the content for {@code false}
 * @param whenTrue the content for {@code true}
 */
record ControlValues(Tensor whenFalse, Tensor whenTrue) {
    ControlValues {
        requireNonNull(whenFalse, "whenFalse");
        requireNonNull(whenTrue, "whenTrue");
    }

    Tensor of(boolean value) {
        return value ? whenTrue : whenFalse;
    }
}
