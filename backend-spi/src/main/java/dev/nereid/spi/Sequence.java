package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

/**
 * The position of a request in a sequence of requests to a stateful model. Immutable.
 *
 * @param id which sequence
 * @param start whether this is the first request of the sequence
 * @param end whether this is the last request of the sequence
 * @since 1.0
 */
public record Sequence(Id id, boolean start, boolean end) {
    /** Checks the components. */
    public Sequence {
        requireNonNull(id, "id");
    }

    /**
     * Creates the position in a sequence with a number.
     *
     * @param id an unsigned 64-bit number other than 0
     * @param start whether this is the first request of the sequence
     * @param end whether this is the last request of the sequence
     * @return the position
     */
    public static Sequence of(long id, boolean start, boolean end) {
        return new Sequence(new Id.Numeric(id), start, end);
    }

    /**
     * Creates the position in a sequence with a text.
     *
     * @param id a text that is not empty
     * @param start whether this is the first request of the sequence
     * @param end whether this is the last request of the sequence
     * @return the position
     */
    public static Sequence of(String id, boolean start, boolean end) {
        return new Sequence(new Id.Text(id), start, end);
    }

    /** Identifier of a sequence. Numbers and texts are different ids: 1 is not "1". */
    public sealed interface Id {
        /**
         * A number.
         *
         * @param value an unsigned 64-bit number other than 0
         */
        record Numeric(long value) implements Id {}

        /**
         * A text.
         *
         * @param value a text that is not empty
         */
        record Text(String value) implements Id {
            /** Checks the component. */
            public Text {
                requireNonNull(value, "value");
            }
        }
    }
}
