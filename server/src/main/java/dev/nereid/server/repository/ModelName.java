package dev.nereid.server.repository;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.spi.ErrorCode;

/** Checks names of models that clients send, before anything touches the disk. Static functions only. */
public final class ModelName {
    private static final int MAX_LENGTH = 255;

    private ModelName() {}

    /**
     * Refuses a text that is not the name of one directory.
     *
     * @param name any text
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if it is empty, too long, or could lead out of the
     *     repository
     */
    public static void check(String name) {
        if (name.isEmpty()) {
            throw invalid("Model name cannot be empty. Please enter a valid name to deploy.");
        }
        boolean leadsElsewhere = name.equals(".") || name.equals("..") || name.contains("/") || name.contains("\\");
        if (leadsElsewhere || name.chars().anyMatch(Character::isISOControl)) {
            throw invalid("invalid model name '" + Quoted.text(name)
                    + "', model name must not contain path traversal characters");
        }
        if (name.length() > MAX_LENGTH) {
            throw invalid("invalid model name '" + Quoted.text(name) + "': " + name.length()
                    + " characters (expected: at most " + MAX_LENGTH + ")");
        }
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }
}
