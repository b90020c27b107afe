package dev.nereid.server.control;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferenceException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Converts what a load throws into the failure that clients receive. Immutable.
 *
 * @param fatalErrors handles errors after which the process may not be able to serve
 */
record LoadFailures(FatalErrorHandler fatalErrors) {
    private static final Logger LOG = LoggerFactory.getLogger(LoadFailures.class);

    /** Returns the failure of a load. An unexpected one is logged: such as a model that is too large for the heap. */
    InferenceException of(String model, Throwable cause) {
        return switch (cause) {
            case InferenceException failure -> failure;
            case BackendException failure ->
                new InferenceException(failure.code(), String.valueOf(failure.getMessage()));
            default -> {
                fatalErrors.check(cause);
                LOG.atError().addKeyValue("model", model).setCause(cause).log("load failed unexpectedly");
                yield new InferenceException(ErrorCode.INTERNAL, "internal error: " + cause);
            }
        };
    }
}
