package dev.nereid.repository.config;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;

/** Creates the exceptions of invalid configurations. */
public final class ConfigErrors {
    private ConfigErrors() {}

    /** A configuration that would be wrong at any time. */
    public static InferenceException invalid(String message) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
