package dev.nereid.backend.natives;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;

/** Errors of a model or its configuration, in the words of the reference server. Stateless. */
public final class ModelErrors {
    private ModelErrors() {}

    public static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }

    /** Returns an exception with a message that begins with the model's name. */
    public static BackendException cannotLoad(String model, String message) {
        return invalid("unable to load model '" + model + "', " + message);
    }

    /** Returns an exception about an {@code input} or {@code output} that the model does not have. */
    public static BackendException unknown(String role, String name) {
        return invalid("unexpected inference " + role + " '" + name + "': the model has none of that name");
    }
}
