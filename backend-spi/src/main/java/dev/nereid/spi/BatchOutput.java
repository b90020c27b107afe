package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.List;

/**
 * Outputs that the server splits by the shapes of an input ({@code batch_output}). Immutable.
 *
 * @param kind how they are split
 * @param names the names of the outputs; at least one
 * @param source the name of the input with the shapes by which they are split
 * @since 1.0
 */
public record BatchOutput(Kind kind, List<String> names, String source) {
    /** Kinds of split outputs. Open: later versions may add constants. */
    public enum Kind {
        /**
         * Each request's part has the shape of the source in that request. It has the dimensions of the output's
         * configuration, batch dimension included, and where one of these is variable, that of the source in the same
         * place. The parts lie one after another in the order of the requests.
         */
        SCATTER_WITH_INPUT_SHAPE
    }

    /** Checks and copies the components. */
    public BatchOutput {
        requireNonNull(kind, "kind");
        names = List.copyOf(names);
        requireNonNull(source, "source");
        if (names.isEmpty()) {
            throw new IllegalArgumentException("names: none (expected: at least one)");
        }
    }
}
