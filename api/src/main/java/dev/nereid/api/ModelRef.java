package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.ErrorCode;

/**
 * Names a model and, optionally, one of its versions. Immutable.
 *
 * @param name the model's name; any text, since unknown and invalid names get the same response
 * @param version the version, or {@link #LATEST}
 */
public record ModelRef(String name, long version) {
    /** Stands for the highest ready version. */
    public static final long LATEST = -1;

    /** Checks the components. */
    public ModelRef {
        requireNonNull(name, "name");
        if (version < LATEST) {
            throw new IllegalArgumentException("version: " + version + " (expected: >= -1)");
        }
    }

    /**
     * Creates a reference to the highest ready version of a model.
     *
     * @param name the model's name
     * @return the reference
     */
    public static ModelRef latest(String name) {
        return new ModelRef(name, LATEST);
    }

    /**
     * Parses a version as clients write it.
     *
     * @param name the model's name
     * @param version a whole number of 0 or more, or an empty text for the highest ready version
     * @return the reference
     * @throws InferenceException with {@link ErrorCode#INVALID_ARGUMENT} if the text is no such number
     */
    public static ModelRef parse(String name, String version) {
        if (version.isEmpty()) {
            return latest(name);
        }
        long number;
        try {
            number = Long.parseLong(version);
        } catch (NumberFormatException e) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "failed to get model version from specified version string '" + Quoted.text(version)
                            + "' (details: stol), version should be an integral value > 0");
        }
        if (number < 0) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "invalid model version specified '" + Quoted.text(version)
                            + "' , version should be an integral value > 0");
        }
        return new ModelRef(name, number);
    }

    /** Returns the name and, if one is given, the version, as in error messages. */
    @Override
    public String toString() {
        String quoted = "'" + Quoted.text(name) + "'";
        return version == LATEST ? quoted : quoted + " version " + version;
    }
}
