package dev.nereid.repository;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.spi.ErrorCode;

/** Checks names of models that clients send, before anything touches the disk. Static functions only. */
public final class ModelName {
    private static final int MAX_LENGTH = 255;

    private ModelName() {}

    /**
     * Refuses a text that is not the name of one directory. White space around it does not make it one.
     *
     * @param name any text
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if it is blank, too long, or could lead out of the
     *     repository
     */
    public static void check(String name) {
        if (name.isBlank()) {
            throw invalid("Model name cannot be empty. Please enter a valid name to deploy.");
        }
        if (leadsElsewhere(name)) {
            throw invalid("invalid model name '" + Quoted.text(name)
                    + "', model name must not contain path traversal characters");
        }
        if (name.length() > MAX_LENGTH) {
            throw invalid("invalid model name '" + Quoted.text(name) + "': " + name.length()
                    + " characters (expected: at most " + MAX_LENGTH + ")");
        }
    }

    /** Returns whether a model may have a name, so that {@link #check} does not refuse it. */
    public static boolean isPossible(String name) {
        return !name.isBlank() && !leadsElsewhere(name) && name.length() <= MAX_LENGTH;
    }

    private static boolean leadsElsewhere(String name) {
        String trimmed = name.strip();
        return trimmed.equals(".")
                || trimmed.equals("..")
                || name.contains("/")
                || name.contains("\\")
                || name.chars().anyMatch(Character::isISOControl);
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }
}
