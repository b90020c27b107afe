package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.List;

/**
 * Outputs that a backend computes flat for a whole batch and the server cuts into the shapes of an input of each request
 * ({@code batch_output}). Immutable.
 *
 * @param kind how they are cut
 * @param names the names of the outputs; at least one
 * @param source the name of the input whose shape each request's part has
 */
public record BatchOutput(Kind kind, List<String> names, String source) {
    /** How an output is cut. Open: later versions may add constants. */
    public enum Kind {
        /** Each request's part has as many elements, and the shape, as its source input. */
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
