package dev.nereid.repository.config;

import static java.util.Objects.requireNonNull;

import java.util.regex.Pattern;

/**
 * A problem of a model's configuration. Immutable.
 *
 * @param line the line of the file, from 1; 0 if the problem has no position
 * @param column the column, from 1; 0 if the problem has no position
 * @param message the mistake and the expected value
 * @param suggestion the probable spelling of a misspelt field or value; empty if there is none
 * @param sourceLine the line of the file, cut and without control characters; empty if there is none
 * @param sourceColumn the index of the position in {@code sourceLine}
 */
public record ConfigProblem(
        int line, int column, String message, String suggestion, String sourceLine, int sourceColumn) {
    private static final Pattern EXPECTED = Pattern.compile(" \\(expected: .*\\)$", Pattern.DOTALL);

    public ConfigProblem {
        requireNonNull(message, "message");
        requireNonNull(suggestion, "suggestion");
        requireNonNull(sourceLine, "sourceLine");
    }

    /**
     * Creates a problem without a position.
     *
     * @param message the mistake and the expected value
     */
    public static ConfigProblem of(String message) {
        return new ConfigProblem(0, 0, message, "", "", 0);
    }

    /** Describes position, message and suggestion, as far as there are any, in one line. */
    public String describe() {
        return (hasPosition() ? line + ":" + column + ": " : "") + message + question(suggestion);
    }

    /** Describes message and suggestion without the position. A suggestion takes the place of the expected value. */
    public String brief() {
        return suggestion.isEmpty() ? message : EXPECTED.matcher(message).replaceFirst("") + question(suggestion);
    }

    /** Returns the question for a suggestion, to be appended to a message; empty without a suggestion. */
    private static String question(String suggestion) {
        return suggestion.isEmpty() ? "" : "; did you mean '" + suggestion + "'?";
    }

    /** Returns whether the problem has a position in its file. */
    public boolean hasPosition() {
        return line > 0;
    }
}
