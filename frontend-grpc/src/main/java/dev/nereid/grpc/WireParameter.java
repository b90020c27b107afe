package dev.nereid.grpc;

import dev.nereid.spi.ParameterValue;

/** The value of a parameter as a client wrote it. Immutable. */
sealed interface WireParameter {
    /** The value of a parameter that has none. */
    WireParameter NONE = new None();

    /**
     * A value of a type that backends know.
     *
     * @param value the value
     */
    record Known(ParameterValue value) implements WireParameter {}

    /**
     * An unsigned integer.
     *
     * @param value the value, unsigned
     */
    record Unsigned(long value) implements WireParameter {}

    /** No value at all. */
    record None() implements WireParameter {}
}
