package dev.nereid.server.config;

import static java.util.Objects.requireNonNull;

/**
 * A problem of a model's configuration. Immutable.
 *
 * @param line the line of the file, from 1; 0 if the problem has no position
 * @param column the column, from 1; 0 if the problem has no position
 * @param message what is wrong and what was expected
 * @param suggestion the probable spelling of a misspelt field or value; empty if there is none
 * @param sourceLine the line of the file, cut and without control characters; empty if there is none
 * @param sourceColumn the index of the position in {@code sourceLine}
 */
public record ConfigProblem(
        int line, int column, String message, String suggestion, String sourceLine, int sourceColumn) {
    /** Checks the components. */
    public ConfigProblem {
        requireNonNull(message, "message");
        requireNonNull(suggestion, "suggestion");
        requireNonNull(sourceLine, "sourceLine");
    }

    /**
     * Creates a problem without a position.
     *
     * @param message what is wrong and what was expected
     * @return the problem
     */
    public static ConfigProblem of(String message) {
        return new ConfigProblem(0, 0, message, "", "", 0);
    }

    /**
     * Returns whether the problem has a position in its file.
     *
     * @return {@code true} if it has one
     */
    public boolean hasPosition() {
        return line > 0;
    }
}
