package dev.nereid.api.parameter;

import static java.util.Objects.requireNonNull;

/**
 * The value of a request's or response's parameter. Immutable. A backend reads it by
 * {@link dev.nereid.spi.Parameters}.
 */
public sealed interface ParameterValue {
    /**
     * A truth value.
     *
     * @param value the value
     */
    record Bool(boolean value) implements ParameterValue {}

    /**
     * A signed 64-bit integer.
     *
     * @param value the value
     */
    record Int(long value) implements ParameterValue {}

    /**
     * A double-precision number.
     *
     * @param value the value
     */
    record Real(double value) implements ParameterValue {}

    /**
     * A text.
     *
     * @param value the value
     */
    record Text(String value) implements ParameterValue {
        /** Checks the component. */
        public Text {
            requireNonNull(value, "value");
        }
    }
}
