package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

/**
 * An input with which the server controls a model of sequences ({@code control_input}). A backend finds it as any other
 * input of a request, of the shape {@code [1]} and with the batch dimension in front if the model batches. Immutable.
 *
 * @param kind the meaning of its element
 * @param name its name
 * @param type the type of its element
 * @since 1.0
 */
public record ControlInput(Kind kind, String name, DataType type) {
    /** Kinds of control inputs. Open: later versions may add constants. */
    public enum Kind {
        /** {@code true} if the request starts its sequence. */
        SEQUENCE_START,
        /** {@code true} if the request ends its sequence. */
        SEQUENCE_END,
        /**
         * {@code true} if there is a request; {@code false} for a
         * {@linkplain InferenceRequest#isNullRequest() null request}.
         */
        SEQUENCE_READY,
        /** The id of the sequence. */
        SEQUENCE_CORRID
    }

    /** Checks the components. */
    public ControlInput {
        requireNonNull(kind, "kind");
        requireNonNull(name, "name");
        requireNonNull(type, "type");
    }
}
