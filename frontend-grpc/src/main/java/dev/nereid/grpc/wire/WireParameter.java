package dev.nereid.grpc.wire;

import dev.nereid.spi.ParameterValue;

/** The value of a parameter as received. Immutable. */
sealed interface WireParameter {
    /** The value of a parameter that has none. */
    WireParameter NONE = new None();

    /**
     * A value of a type that backends support.
     *
     * @param value the value
     */
    record Value(ParameterValue value) implements WireParameter {}

    /**
     * An unsigned integer.
     *
     * @param value the value, unsigned
     */
    record Unsigned(long value) implements WireParameter {}

    /** A parameter without a value. */
    record None() implements WireParameter {}
}
