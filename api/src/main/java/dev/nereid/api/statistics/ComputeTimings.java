package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

/**
 * Counts and durations of the phases of executions. Immutable.
 *
 * @param input preparation of inputs
 * @param infer computation
 * @param output delivery of outputs
 */
public record ComputeTimings(Timing input, Timing infer, Timing output) {
    /** Checks the components. */
    public ComputeTimings {
        requireNonNull(input, "input");
        requireNonNull(infer, "infer");
        requireNonNull(output, "output");
    }
}
